import { expect, it } from 'vitest';
import { aborted, type Summary } from '../../../scripts/run/outcome.ts';
import { weightLine } from '../../../scripts/run/show.ts';

const line = (weight: Partial<Summary>) => weightLine({ ...aborted('run_aborted'), ...weight });

it('says of a track with a cut whether a score may carry weight, and of others nothing', () => {
  expect(line({ eligible: true, cut: 0.2 })).toBe('eligible for weight: at or above the cut of 0.2');
  expect(line({ eligible: false, ineligible_because: 'below_cut', cut: 0.5 })).toMatch(/^not .* cut of 0.5$/);
  expect(line({ eligible: false, ineligible_because: 'calibration', cut: 0.5 })).toMatch(/^not .*--ranked/);
  expect(line({ eligible: false, ineligible_because: 'calibration', cut: null })).toBe(null);
  expect(line({})).toBe(null);
});
