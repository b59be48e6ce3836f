import { decodeF64be } from '../guest/wire/f64.ts';
import { type Mechanism, trackRules } from '../guest/wire/mechanism.ts';
import type { EvalPlan } from '../guest/wire/plan.ts';

/**
 * Whether an accepted score may carry weight: a ranked run's at or above the cut of its track. A calibration run
 * reports and weighs nothing (spec/02).
 * @throws track_unknown, f64be_invalid.
 */
export function isEligible(
  { ranked, track }: Pick<EvalPlan, 'ranked' | 'track'>,
  scoreF64be: string,
  mechanism: Mechanism,
): boolean {
  return ranked && decodeF64be(scoreF64be) >= (trackRules(mechanism, track).cut ?? 0);
}
