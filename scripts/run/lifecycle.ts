import { readdirSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { EvaluatorError } from '../../guest/errors.ts';
import { SIGNAL_EXIT } from '../../guest/process/exit-codes.ts';
import { showEvent } from './journal.ts';
import type { Running, StopSignal } from './process.ts';
import { makeScratch, removeAbandoned } from './scratch.ts';

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
 * Runs a verb whose parts are processes; whatever ends it, a signal too, they end and the scratch folder goes. One
 * that was killed is cleaned up after by the next.
 * @param out the verb's output folder: of a refused run nothing is left, not even that.
 */
export async function withParts<T>(out: string, body: (parts: Parts) => Promise<T>): Promise<T> {
  const abandoned = await removeAbandoned(tmpdir());
  if (abandoned > 0)
    showEvent({
      event: 'progress',
      message: `removed ${abandoned} scratch folders that killed runs had left`,
    });
  const work = makeScratch(tmpdir());
  const running: Running[] = [];
  let ended: Promise<void> | null = null;
  const endAll = async (signal: StopSignal): Promise<void> => {
    for (const part of running.toReversed()) await part.stop(signal);
    rmSync(work, { recursive: true, force: true });
    if (readdirSync(out).length === 0) rmdirSync(out);
  };
  const end = (signal: StopSignal): Promise<void> => {
    ended ??= endAll(signal);
    return ended;
  };
  const { promise: failed, resolve: fail } = Promise.withResolvers<EvaluatorError>();
  let signalled = false;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    // Not once: a second one must not end the process before its parts have ended.
    process.on(name, () => {
      if (signalled) return;
      signalled = true;
      end(name).finally(() => process.exit(SIGNAL_EXIT[name]));
      // A terminal's Ctrl-C ends the parts too: that is why they end, and no failure of theirs.
      fail(new EvaluatorError('run_aborted', `ended by ${name}`));
    });
  }
  try {
    return await body({ work, running, fail, failed });
  } finally {
    await end('SIGTERM');
  }
}
