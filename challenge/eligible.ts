import { decodeF64be } from '../guest/wire/f64.ts';
import { type Mechanism, trackRules } from '../guest/wire/mechanism.ts';
import type { EvalPlan } from '../guest/wire/plan.ts';

/** Whether an accepted score may carry weight, and why it may not (spec/02). */
export interface Eligibility {
  /** `calibration`: the run was not ranked, it reports and weighs nothing. Null: it may. */
  ineligibleBecause: 'calibration' | 'below_cut' | null;
  /** The least score of the track that may; null: every score of a ranked run. */
  cut: number | null;
}

/**
 * What an accepted score is worth asking for weight: a ranked run's at or above the cut of its track.
 * @throws track_unknown, f64be_invalid.
 */
export function eligibilityOf(
  { ranked, track }: Pick<EvalPlan, 'ranked' | 'track'>,
  scoreF64be: string,
  mechanism: Mechanism,
): Eligibility {
  const score = decodeF64be(scoreF64be);
  const { cut } = trackRules(mechanism, track);
  if (!ranked) return { ineligibleBecause: 'calibration', cut };
  return { ineligibleBecause: score < (cut ?? 0) ? 'below_cut' : null, cut };
}
