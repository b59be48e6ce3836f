import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../../guest/tracks/audit/agent-result.ts';
import { type GroundTruth, parseGroundTruth } from '../../../../guest/tracks/repositories/ground-truth.ts';
import { f2, scoreFindings } from '../../../../guest/tracks/repositories/score.ts';
import { codeOf, thrown } from '../../../support/throws.ts';

const vulnerability = (some: Partial<Finding> = {}): Finding => ({
  kind: 'vulnerability',
  file: 'src/app.py',
  line: 20,
  cwe: 'CWE-79',
  ...some,
});
const planted = (some: Partial<Finding> = {}) => {
  const { kind: _, ...rest } = vulnerability(some);
  return { title: '', description: '', ...rest };
};
const truth = (...vulnerabilities: ReturnType<typeof planted>[]): GroundTruth =>
  ({ schema_version: 1, vulnerabilities }) as GroundTruth;
const matches = (reported: Partial<Finding>, item: Partial<Finding> = {}) =>
  scoreFindings([vulnerability(reported)], truth(planted(item))) === 1;

describe('f2', () => {
  it.each([
    [1, 1, 1, 1],
    [0, 3, 2, 0],
    [0, 0, 2, 0],
    [1, 2, 1, 5 / 6],
    [1, 1, 2, 5 / 9],
    [2, 2, 2, 1],
    [0, 0, 0, 1],
    [0, 1, 0, 0.8],
    [0, 5, 0, 0],
    [0, 50, 0, 0],
  ])('%i matched of %i reported and %i planted is %d', (matched, reported, count, expected) => {
    expect(f2(matched, reported, count)).toBeCloseTo(expected, 15);
  });
});

describe('a match', () => {
  it.each([
    ['src/app.py', true],
    ['./src/app.py', true],
    ['/src/app.py', true],
    ['SRC\\App.PY', true],
    ['/task/artifact/src/app.py', true],
    ['app.py', true],
    ['p.py', false],
    ['other/app.py', false],
    ['rc/app.py', false],
    ['src/app.pyc', false],
    ['', false],
    ['/', false],
  ])('of the file src/app.py with %j: %s', (file, expected) => {
    expect(matches({ file })).toBe(expected);
  });

  it.each([
    [10, true],
    [30, true],
    [9, false],
    [31, false],
    [null, true],
    [undefined, true],
  ])('of line 20 with %s: %s', (line, expected) => {
    expect(matches({ line })).toBe(expected);
    expect(matches({ line: 20 }, { line })).toBe(expected);
  });

  it.each<[Partial<Finding>, Partial<Finding>, boolean]>([
    [{ cwe: 'CWE-079' }, {}, true],
    [{ cwe: 'cwe-79' }, {}, true],
    [{ cwe: 79 }, {}, true],
    [{ cwe: '0079' }, {}, true],
    [{ cwe: 'CWE-80' }, {}, false],
    [{ cwe: 'CWE-80', all_cwes: ['CWE-79'] }, {}, true],
    [{ cwe: 'CWE-80' }, { all_cwes: ['CWE-80', 'CWE-81'] }, true],
    [{ cwe: null }, { cwe: null }, false],
    [{ cwe: 'NVD-CWE-noinfo' }, { cwe: 'NVD-CWE-noinfo' }, false],
    [{ cwe: 7.9 }, { cwe: 79 }, false],
  ])('of weaknesses %o with %o: %s', (reported, item, expected) => {
    expect(matches(reported, item)).toBe(expected);
  });

  it.each([
    ['sql injection in search', 'SQL injection, in: search!', true],
    // 1 of 3 words is below 0.34, 2 of 5 is above.
    ['alpha beta', 'alpha gamma', false],
    ['alpha beta gamma', 'alpha beta delta epsilon', true],
    ['', '', false],
  ])('of words %j with %j: %s', (title, description, expected) => {
    expect(matches({ cwe: null, title }, { cwe: null, description })).toBe(expected);
  });

  it('of words counts title and description together', () => {
    const item = { cwe: null, title: 'path traversal', description: 'the name leaves the folder' };
    expect(
      matches({ cwe: null, title: 'path', description: 'traversal the name leaves the folder' }, item),
    ).toBe(true);
  });
});

describe('scoreFindings', () => {
  it('pairs optimally: planted lines 18 and 25, reported 22 and 14', () => {
    const reported = [vulnerability({ line: 22 }), vulnerability({ line: 14 })];
    expect(scoreFindings(reported, truth(planted({ line: 18 }), planted({ line: 25 })))).toBe(1);
  });

  it('counts duplicates against precision', () => {
    expect(scoreFindings([vulnerability(), vulnerability()], truth(planted()))).toBeCloseTo(5 / 6, 15);
  });

  it('weighs the dimensions that the ground truth has 0.5, 0.3, 0.2, and renormalises', () => {
    const all: GroundTruth = {
      ...truth(planted()),
      supply_chain: [{ file: 'requirements.txt', package: 'left_Pad', title: '', description: '' }],
      secrets: [{ file: 'settings.py', line: 3, title: '', description: '' }],
    };
    const supply: Finding = { kind: 'supply_chain', file: 'requirements.txt', package: 'Left.pad' };
    const secret: Finding = { kind: 'secret', file: 'settings.py', line: 5 };
    expect(scoreFindings([vulnerability(), supply, secret], all)).toBe(1);
    expect(scoreFindings([vulnerability()], all)).toBeCloseTo(0.5, 15);
    expect(scoreFindings([supply], all)).toBeCloseTo(0.3, 15);
    expect(scoreFindings([secret], all)).toBeCloseTo(0.2, 15);
    const { secrets: _, ...two } = all;
    expect(scoreFindings([vulnerability()], two)).toBeCloseTo(0.5 / 0.8, 15);
    // What the ground truth has no dimension for costs nothing.
    expect(scoreFindings([vulnerability(), supply, secret], two)).toBe(1);
  });

  it('gives an empty dimension 1 less a fifth for each report', () => {
    const empty: GroundTruth = { ...truth(planted()), secrets: [] };
    const secrets = (count: number): Finding[] => Array(count).fill({ kind: 'secret', file: 'a.py' });
    for (const [count, left] of [
      [0, 1],
      [1, 0.8],
      [5, 0],
      [9, 0],
    ] as const)
      expect(scoreFindings([vulnerability(), ...secrets(count)], empty)).toBeCloseTo(
        (0.5 + 0.2 * left) / 0.7,
        15,
      );
  });

  it('matches supply-chain findings by file and package, secrets by file and line', () => {
    const one: GroundTruth = {
      schema_version: 1,
      supply_chain: [{ file: 'a/package.json', package: 'x', title: '', description: '' }],
    };
    const supply = (some: Partial<Finding>): Finding => ({
      kind: 'supply_chain',
      file: 'package.json',
      package: 'X',
      ...some,
    });
    expect(scoreFindings([supply({})], one)).toBe(1);
    expect(scoreFindings([supply({ package: 'y' })], one)).toBe(0);
    expect(scoreFindings([supply({ package: null })], one)).toBe(0);
    expect(scoreFindings([supply({ file: 'b/package.json' })], one)).toBe(0);
    const secret: GroundTruth = {
      schema_version: 1,
      secrets: [{ file: 'a.py', line: 5, title: '', description: '' }],
    };
    expect(scoreFindings([{ kind: 'secret', file: 'a.py', line: 15 }], secret)).toBe(1);
    expect(scoreFindings([{ kind: 'secret', file: 'a.py', line: 16 }], secret)).toBe(0);
  });

  const items = fc.record({
    file: fc.constantFrom('a.py', 'src/a.py', 'b.py'),
    line: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    cwe: fc.constantFrom('CWE-1', 'CWE-2'),
  });

  it('is in [0,1], whatever the order; what is planted, reported, is 1; what matches nothing never helps', () => {
    fc.assert(
      fc.property(
        fc.array(items, { maxLength: 6, minLength: 1 }),
        fc.array(items, { maxLength: 8 }),
        (a, b) => {
          const hidden = truth(...a.map((item) => planted(item)));
          const reported = b.map((item) => vulnerability(item));
          const score = scoreFindings(reported, hidden);
          expect(score).toBeGreaterThanOrEqual(0);
          expect(score).toBeLessThanOrEqual(1);
          expect(scoreFindings(reported.toReversed(), hidden)).toBe(score);
          expect(
            scoreFindings(
              a.map((item) => vulnerability(item)),
              hidden,
            ),
          ).toBe(1);
          const noise = vulnerability({ file: 'nowhere.py' });
          expect(scoreFindings([...reported, noise], hidden)).toBeLessThanOrEqual(score);
        },
      ),
    );
  });
});

describe('parseGroundTruth', () => {
  const parse = (value: unknown) => parseGroundTruth(Buffer.from(JSON.stringify(value)), 'task a');

  it.each([
    ['no dimension', { schema_version: 1 }],
    ['an unknown dimension', { schema_version: 1, secrets: [], bugs: [] }],
    ['another version', { schema_version: 2, secrets: [] }],
    ['a secret without a file', { schema_version: 1, secrets: [{ line: 1 }] }],
    ['a dependency without a name', { schema_version: 1, supply_chain: [{ file: 'a' }] }],
    ['257 planted', { schema_version: 1, secrets: Array(257).fill({ file: 'a' }) }],
    ['a label', { schema_version: 1, class: 'safe' }],
  ])('refuses %s', (_, value) => {
    expect(codeOf(() => parse(value))).toBe('ground_truth_invalid');
  });

  it('reads an empty dimension, which is scored', () => {
    expect(parse({ schema_version: 1, secrets: [] })).toEqual({ schema_version: 1, secrets: [] });
  });

  it('says nothing of what is hidden', () => {
    const error = thrown(() => parse({ schema_version: 1, secrets: [{ file: 'hidden.py', hidden: 1 }] }));
    expect(error.message).not.toContain('hidden');
    expect(error.cause).toBeUndefined();
  });
});
