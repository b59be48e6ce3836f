import { describe, expect, it } from 'vitest';
import { eligibilityOf } from '../../challenge/eligible.ts';
import { encodeF64be } from '../../guest/wire/f64.ts';
import { parseMechanism } from '../../guest/wire/mechanism.ts';
import { codeOf } from '../support/throws.ts';
import { MECHANISM_BYTES } from '../support/valid-result.ts';

const { mechanism } = parseMechanism(MECHANISM_BYTES);
const eligible = (track: string, score: number, ranked: boolean) =>
  eligibilityOf({ track, ranked }, encodeF64be(score), mechanism);

describe('eligibilityOf', () => {
  it.each([
    ['skills', 0.2, true],
    ['skills', 0.1999, false],
    ['mcp_servers', 0.1999, false],
    ['packages', 1, true],
    ['repositories', 0.5, true],
    ['repositories', 0.4999, false],
    ['terminal-bench', 0, true],
  ])('of a ranked run on %s with %d: %s', (track, score, expected) => {
    const { ineligibleBecause, cut } = eligible(track, score, true);
    expect(ineligibleBecause).toBe(expected ? null : 'below_cut');
    expect(cut).toBe(mechanism.tracks[track]?.cut);
  });

  it('is never a calibration run', () => {
    for (const track of Object.keys(mechanism.tracks))
      expect(eligible(track, 1, false).ineligibleBecause).toBe('calibration');
  });

  it('refuses an unknown track', () => {
    expect(codeOf(() => eligible('chess', 1, true))).toBe('track_unknown');
  });
});
