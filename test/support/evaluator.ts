import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const MAIN = join(import.meta.dirname, '../../scripts/cli/main.ts');

export interface Ended {
  /** null when a signal ended it. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface StartedEvaluator {
  child: ChildProcess;
  ended: Promise<Ended>;
  /** Resolves once `pattern` is on stderr; rejects when the process ends without it. */
  says(pattern: RegExp): Promise<void>;
}

/** The command line, or a program of a test's in its place, as a process of its own. */
export function startEvaluator(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  program = MAIN,
): StartedEvaluator {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return {
    child,
    ended,
    says: async (pattern) => {
      while (!pattern.test(stderr)) {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`ended (${child.exitCode ?? child.signalCode}) without ${pattern}:\n${stderr}`);
        await sleep(20);
      }
    },
  };
}

/** Runs a verb to its end. */
export function evaluator(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return startEvaluator(args, env).ended;
}

/** Processes that were started by `pid` and still live, with their command lines. */
export function childrenOf(pid: number): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (Number(parent) !== pid || state === 'Z') return [];
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        return [{ pid: Number(name), command }];
      } catch {
        // It ended while we looked.
        return [];
      }
    });
}

/** Whether a process has not ended; one that nobody waits for has. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !'ZX'.includes(stat.charAt(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
}

/** The guest that an `evaluator run` has started. */
export async function guestOf({ child }: StartedEvaluator): Promise<number> {
  for (;;) {
    const guest = childrenOf(child.pid ?? 0).find(({ command }) => command.includes('guest/eval.ts'));
    if (guest) return guest.pid;
    if (child.exitCode !== null) throw new Error('the run ended before its guest was seen');
    await sleep(20);
  }
}
