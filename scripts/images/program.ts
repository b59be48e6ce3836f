import { execFile } from 'node:child_process';
import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** Where and with what environment a program runs; its environment is this process's own with `env` on top. */
export interface Surroundings {
  cwd: string;
  env: Readonly<Record<string, string>>;
}

/**
 * What a program wrote to stdout, without a shell.
 * @throws build_unavailable when it is not there, build_failed with the end of its output.
 */
export function outputOf(program: string, args: readonly string[], at: Surroundings): Promise<string> {
  const options = { cwd: at.cwd, env: { ...process.env, ...at.env }, maxBuffer: MAX_OUTPUT_BYTES };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (cause, stdout, stderr) => {
      if (cause === null) return resolve(stdout);
      if (cause.code === 'ENOENT')
        return reject(
          new EvaluatorError('build_unavailable', `${program} was not found: apt-get install ${program}`, {
            cause,
          }),
        );
      const last = `${stdout}\n${stderr}`.trim().split('\n').slice(-5).join('\n');
      reject(new EvaluatorError('build_failed', `${program} ${args[0] ?? ''} failed:\n${last}`, { cause }));
    });
  });
}

/** Turns any failure of `step` into one of the caller's: `code` and what it means here. */
export async function orRefuse<T>(
  step: Promise<T>,
  code: 'build_unavailable' | 'build_source_invalid',
  message: string,
): Promise<T> {
  try {
    return await step;
  } catch (cause) {
    if (isEvaluatorError(cause, 'build_unavailable')) throw cause;
    throw new EvaluatorError(code, message, { cause });
  }
}
