import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CODES, type Code, EvaluatorError } from '../../guest/errors.ts';

const LIFELINE = join(import.meta.dirname, 'lifeline.ts');
const READY_WITHIN_MS = 60_000;
/** A guest takes its containers down first. */
const STOP_WITHIN_MS = 30_000;

export interface ProcessOptions {
  name: string;
  script: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Written to its stdin, then closed. */
  input: string;
  onStdout: (line: string) => void;
  onStderr: (line: string) => void;
}

export interface Running {
  name: string;
  /** Exit code, or null when a signal ended it. */
  exited: Promise<number | null>;
  /** Asks it to end, by the signal that ended its parent where there was one. */
  stop(signal?: StopSignal): Promise<void>;
}

export type StopSignal = 'SIGINT' | 'SIGTERM';

function settled(child: ChildProcess, output: readonly Promise<unknown>[]): Promise<number | null> {
  return once(child, 'exit').then(async ([code]) => {
    await Promise.all(output);
    return code as number | null;
  });
}

/**
 * Starts a part of this project as a process of its own, under the same Node, with only the named variables. It
 * ends when this process does, by whatever signal.
 */
export function startProcess(options: ProcessOptions): Running {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', `--import=${LIFELINE}`, options.script, ...options.args],
    // The fourth is the lifeline.
    { stdio: ['pipe', 'pipe', 'pipe', 'pipe'], env: { PATH: process.env.PATH ?? '', ...options.env } },
  );
  const [stdin, stdout, stderr, lifeline] = child.stdio;
  for (const pipe of [stdin, lifeline]) pipe?.on('error', () => undefined);
  stdin.end(options.input);
  const lines = [
    [stdout, options.onStdout],
    [stderr, options.onStderr],
  ] as const;
  const output = lines.map(([stream, onLine]) =>
    once(createInterface({ input: stream }).on('line', onLine), 'close'),
  );
  const exited = settled(child, output);
  let stopped: Promise<void> | null = null;
  const stop = async (signal: StopSignal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await exited;
    clearTimeout(timer);
  };
  return {
    name: options.name,
    exited,
    // A second signal would end it before it has cleaned up.
    stop: (signal = 'SIGTERM') => {
      stopped ??= stop(signal);
      return stopped;
    },
  };
}

/** A part's last word, when it refused what it was given: `{event: "refused", code, detail}`. */
function refusalOf(name: string, line: string | undefined): EvaluatorError | null {
  try {
    const { event, code, detail } = JSON.parse(line ?? '') as Record<string, unknown>;
    if (event !== 'refused' || !Object.hasOwn(CODES, String(code))) return null;
    return new EvaluatorError(code as Code, `${name}: ${detail}`);
  } catch {
    return null;
  }
}

/** Starts a server and waits for its ready line, a JSON object with `event: "ready"`. @throws process_failed, or the server's own refusal. */
export async function startServer<T>(
  options: Omit<ProcessOptions, 'onStdout'>,
): Promise<{ running: Running; ready: T }> {
  let onReady: (value: T) => void = () => undefined;
  const ready = new Promise<T>((resolve) => {
    onReady = resolve;
  });
  const errors: string[] = [];
  const running = startProcess({
    ...options,
    onStdout: (line) => {
      const event = JSON.parse(line) as { event?: unknown };
      if (event.event === 'ready') onReady(event as T);
    },
    onStderr: (line) => {
      errors.push(line);
      // What refuses is thrown, and of a refused run no journal is left.
      if (refusalOf(options.name, line) === null) options.onStderr(line);
    },
  });
  const failed = (what: string) =>
    refusalOf(options.name, errors.at(-1)) ??
    new EvaluatorError('process_failed', [`${options.name}: ${what}`, ...errors.slice(-5)].join('\n'));
  const timer = new AbortController();
  try {
    return await Promise.race([
      ready.then((value) => ({ running, ready: value })),
      running.exited.then((code) => Promise.reject(failed(`ended with ${code} before it was ready`))),
      new Promise<never>((_, reject) => {
        const timeout = setTimeout(() => reject(failed('not ready in time')), READY_WITHIN_MS);
        timer.signal.addEventListener('abort', () => clearTimeout(timeout));
      }),
    ]);
  } catch (error) {
    await running.stop();
    throw error;
  } finally {
    timer.abort();
  }
}
