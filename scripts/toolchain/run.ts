import { spawnSync } from 'node:child_process';
import { EvaluatorError } from '../../guest/errors.ts';

/** Runs a tool of the building machine and returns its stdout; `remedy` says what a person can do when it fails. */
export function runTool(
  command: string,
  args: readonly string[],
  options: { cwd: string; remedy: string; timeoutMs: number; env?: NodeJS.ProcessEnv },
): string {
  const done = spawnSync(command, args, {
    cwd: options.cwd,
    encoding: 'utf8',
    env: options.env ?? process.env,
    maxBuffer: 64 * 1024 * 1024,
    timeout: options.timeoutMs,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (done.status === 0) return done.stdout;
  const why = done.error ? done.error.message : lastLine(done.stderr) || `exit ${done.status ?? done.signal}`;
  throw new EvaluatorError(
    'toolchain_unavailable',
    `${command} ${args.slice(0, 2).join(' ')}: ${why}. ${options.remedy}`,
    { cause: done.error },
  );
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
