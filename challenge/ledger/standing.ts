import type { Run } from './ledger.ts';

const ZERO = '0000000000000000';

/**
 * The score that a run counts with, as f64be: its accepted one, 0 when it started and brought nothing, and
 * null when it counts as nothing (spec/07).
 */
export function standingScore(run: Pick<Run, 'state' | 'scoreF64be'>): string | null {
  if (run.state === 'no_result') return ZERO;
  return run.state === 'accepted' ? run.scoreF64be : null;
}
