import { spawn } from 'node:child_process';
import { EvaluatorError } from '../../guest/errors.ts';

const KEPT_STDERR_BYTES = 8192;

/**
 * Runs a program to its end, without a shell. Its output goes nowhere but into the error.
 * @throws command_failed with the end of its stderr.
 */
export function runProgram(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    let tail = '';
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text: string) => {
      tail = (tail + text).slice(-KEPT_STDERR_BYTES);
    });
    child.on('error', (cause) =>
      reject(
        new EvaluatorError('command_failed', `${program} could not be started: ${cause.message}`, { cause }),
      ),
    );
    child.on('close', (status, signal) => {
      if (status === 0) return resolve();
      const end = signal ? `signal ${signal}` : `status ${status}`;
      const last = tail.trim().split('\n').slice(-5).join('\n');
      reject(new EvaluatorError('command_failed', `${program} ended with ${end}:\n${last}`));
    });
  });
}
