import { mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EvaluatorError } from '../../guest/errors.ts';
import { SIGNAL_EXIT } from '../../guest/process/exit-codes.ts';
import type { Running } from './process.ts';

/** What a verb's parts share while they run. */
export interface Parts {
  /** Scratch folder, removed with everything in it at the end. */
  work: string;
  /** Ended in reverse order: the guest first, it takes its containers down. */
  running: Running[];
  /** Called with what ends all before the guest does. */
  fail: (error: EvaluatorError) => void;
  /** Resolves with the first of these. */
  failed: Promise<EvaluatorError>;
}

/**
 * Runs a verb whose parts are processes; whatever ends it, a signal too, they end and the scratch folder goes.
 * @param out the verb's output folder: of a refused run nothing is left, not even that.
 */
export async function withParts<T>(out: string, body: (parts: Parts) => Promise<T>): Promise<T> {
  const work = mkdtempSync(join(tmpdir(), 'cvm-eval-'));
  const running: Running[] = [];
  let ended: Promise<void> | null = null;
  const endAll = async (): Promise<void> => {
    for (const part of running.toReversed()) await part.stop();
    rmSync(work, { recursive: true, force: true });
    if (readdirSync(out).length === 0) rmdirSync(out);
  };
  const end = (): Promise<void> => {
    ended ??= endAll();
    return ended;
  };
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => void end().finally(() => process.exit(SIGNAL_EXIT[name])));
  }
  const { promise: failed, resolve: fail } = Promise.withResolvers<EvaluatorError>();
  try {
    return await body({ work, running, fail, failed });
  } finally {
    await end();
  }
}
