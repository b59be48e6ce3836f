import { describe, expect, it } from 'vitest';
import { fingerprintsOf, nearest } from '../../../../guest/review/static/similarity.ts';
import { similarityLevel } from '../../../../guest/wire/review-decision.ts';
import type { Corpus } from '../../../../guest/wire/review-inputs.ts';
import { membersOf } from '../../../support/review-agents.ts';

const HASH = (digit: string) => digit.repeat(64);

/** Functions with bodies of their own: which operators stand where is drawn from `salt`. */
function program(salt: number, functions: number): string {
  let state = salt * 2_654_435_761;
  const draw = (from: readonly string[]) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return from[state % from.length] ?? '';
  };
  const operator = () => draw(['+', '-', '*', '/', '%', '<', '>', '&', '|', '^', '@']);
  return Array.from({ length: functions }, (_, i) => {
    const lines = Array.from(
      { length: 8 },
      () => `    total = values ${operator()} (total ${operator()} values) ${operator()} total`,
    );
    return `def work_${i}(values, total):\n${lines.join('\n')}\n    return total\n`;
  }).join('\n');
}

const ours = program(1, 40);
const corpus = (...texts: string[]): Corpus => ({
  schema_version: 1,
  algorithm: 'winnow/v1',
  submissions: texts.map((text, i) => ({
    agent_hash: HASH(String(i)),
    fingerprints: fingerprintsOf(membersOf({ 'a.py': text })),
  })),
  tasks: [],
  solution_fragments: [],
});
const against = (text: string, known: Corpus, hash = HASH('f')) =>
  nearest(fingerprintsOf(membersOf({ 'main.py': text })), known, hash);

describe('similarity', () => {
  it('a copy is high, with the hash of what it copies', () => {
    const { containment, matched_agent_hash } = against(ours, corpus('x = 1', ours));
    expect(similarityLevel(containment)).toBe('high');
    expect(matched_agent_hash).toBe(HASH('1'));
  });

  it('other names, other texts, other comments and other spaces change nothing', () => {
    const disguised = ours
      .replaceAll('values', 'numbers')
      .replaceAll('total', 'x9')
      .replaceAll('work_', 'job_')
      .replaceAll(/^ {4}/gm, '        ')
      .replaceAll('\ndef', '\n# nothing to see\n\ndef');
    const { containment } = against(disguised, corpus(ours));
    expect(containment?.shared).toBe(containment?.total);
  });

  it('a part in something larger is medium', () => {
    const { containment } = against(
      `${ours}
${program(2, 15)}`,
      corpus(ours),
    );
    expect(similarityLevel(containment)).toBe('medium');
  });

  it('code of one’s own is none', () => {
    const { containment } = against(
      'import os\n'.repeat(3) + program(5, 3),
      corpus('print(1)\n'.repeat(200)),
    );
    expect(similarityLevel(containment)).toBe('none');
  });

  it('compares a package neither with itself nor with so little that it means nothing', () => {
    expect(against(ours, corpus(ours), HASH('0')).containment).toBeNull();
    expect(
      against('import os\nprint(os.name)\n', corpus('import os\nprint(os.name)\n')).containment,
    ).toBeNull();
  });

  it.each([
    [9, 10, 'high'],
    [89, 100, 'medium'],
    [6, 10, 'medium'],
    [599, 1000, 'none'],
    [0, 1, 'none'],
  ] as const)('%i of %i is %s', (shared, total, level) => {
    expect(similarityLevel({ shared, total })).toBe(level);
  });
});
