import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  MAX_RESULT_BYTES,
  parseBehaviouralResult,
  parseRepositoryResult,
} from '../../../../guest/tracks/audit/agent-result.ts';

const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const behavioural = (verdict: unknown) =>
  parseBehaviouralResult(bytes({ verdict, evidence: {}, findings: [] }));
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const TEXT = '{"verdict":{"decision":"ALLOW"},"evidence":{},"findings":[]}';

describe('the decision', () => {
  it.each(['ALLOW', 'WARN', 'BLOCK', 'allow', 'Warn', 'bLoCk'])('%s is one', (decision) => {
    expect(behavioural({ decision })).toBe(decision.toUpperCase());
  });

  it.each([
    ' ALLOW',
    'ALLOW ',
    'ALLOW\n',
    '',
    'DENY',
    'ALLOWED',
    'BLOC\u212a',
    null,
    true,
    1,
    ['ALLOW'],
    undefined,
  ])('%j is none', (decision) => {
    expect(behavioural({ decision })).toBeNull();
  });

  it.each([
    [{ risk_score: 0 }, true],
    [{ risk_score: 100, confidence: 1 }, true],
    [{ confidence: 0 }, true],
    [{ risk_score: 100.5 }, false],
    [{ risk_score: -1 }, false],
    [{ risk_score: '50' }, false],
    [{ confidence: 1.01 }, false],
    [{ confidence: null }, false],
    [{ reason: 'because' }, false],
  ])('with %j: %s', (more, isFine) => {
    expect(behavioural({ decision: 'WARN', ...more })).toBe(isFine ? 'WARN' : null);
  });
});

describe('the document', () => {
  it('may say anything as evidence and in its findings', () => {
    const findings = [{ file: 'a.py', note: [1, 2] }, {}];
    const one = { verdict: { decision: 'block' }, evidence: { seen: { a: [] } }, findings };
    expect(parseBehaviouralResult(bytes(one))).toBe('BLOCK');
  });

  it.each([
    ['nothing', ''],
    ['a list', '[]'],
    ['a number', '1'],
    ['null', 'null'],
    ['NaN', TEXT.replace('{}', '{"x":NaN}')],
    ['an infinite risk score', TEXT.replace('"ALLOW"', '"ALLOW","risk_score":1e999')],
    ['text after it', `${TEXT}x`],
    ['two documents', TEXT + TEXT],
    ['a byte order mark', `\ufeff${TEXT}`],
    ['a key twice', TEXT.replace('"ALLOW"', '"ALLOW","decision":"BLOCK"')],
    ['a key twice, once escaped', TEXT.replace('"ALLOW"', '"ALLOW","d\\u0065cision":"BLOCK"')],
    ['__proto__', TEXT.replace('{}', '{"__proto__":{}}')],
    ['no verdict', '{"evidence":{},"findings":[]}'],
    ['no evidence', '{"verdict":{"decision":"ALLOW"},"findings":[]}'],
    ['no findings', '{"verdict":{"decision":"ALLOW"},"evidence":{}}'],
    ['another member', TEXT.replace('"findings"', '"more":1,"findings"')],
    ['findings that are no list', TEXT.replace('[]', '{}')],
    ['a finding that is no object', TEXT.replace('[]', '["x"]')],
    ['a list for a verdict', TEXT.replace('{"decision":"ALLOW"}', '["ALLOW"]')],
    ['33 levels', TEXT.replace('{}', `{"x":${nested(31)}}`)],
    ['100,000 levels', TEXT.replace('{}', `{"x":${nested(100_000)}}`)],
    ['10,001 findings', TEXT.replace('[]', `[${'{},'.repeat(10_000)}{}]`)],
    ['a byte more than 1 MiB', TEXT + ' '.repeat(MAX_RESULT_BYTES + 1 - TEXT.length)],
  ])('is malformed with %s', (_, text) => {
    expect(parseBehaviouralResult(Buffer.from(text))).toBeNull();
  });

  it('has 32 levels and 1 MiB at the most', () => {
    expect(parseBehaviouralResult(bytes(TEXT.replace('{}', `{"x":${nested(30)}}`)))).toBe('ALLOW');
    expect(parseBehaviouralResult(bytes(TEXT + ' '.repeat(MAX_RESULT_BYTES - TEXT.length)))).toBe('ALLOW');
  });

  it('is UTF-8', () => {
    const latin1 = Buffer.from(TEXT.replace('{}', '{"x":"\u00e9"}'), 'latin1');
    expect(parseBehaviouralResult(latin1)).toBeNull();
    expect(parseBehaviouralResult(Buffer.from(TEXT, 'utf16le'))).toBeNull();
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), fc.json().map(Buffer.from)), (some) => {
        expect([null, 'ALLOW', 'WARN', 'BLOCK']).toContain(parseBehaviouralResult(Buffer.from(some)));
        parseRepositoryResult(Buffer.from(some));
      }),
    );
  });
});

describe('a repository audit', () => {
  const audit = (evidence: unknown, findings: unknown[] = []) =>
    parseRepositoryResult(bytes({ verdict: { decision: 'WARN' }, evidence, findings }));
  const good = { audit: { files_analysed: 1 } };

  it('has looked at a file at least', () => {
    expect(audit(good)).toEqual([]);
    expect(audit({ audit: { files_analysed: 12, tools: ['grep'] }, notes: '' })).toEqual([]);
    for (const count of [0, -1, 1.5, '3', null, undefined])
      expect(audit({ audit: { files_analysed: count } })).toBeNull();
    for (const evidence of [{}, { audit: [] }, { files_analysed: 3 }]) expect(audit(evidence)).toBeNull();
  });

  it('may be wrong in every entry of a list that fills it', () => {
    const finding = { kind: 'secret', file: 'a' };
    for (const entry of [[], {}, true, 79])
      expect(audit(good, [{ ...finding, all_cwes: Array(300_000).fill(entry) }])).toBeNull();
    expect(audit(good, Array(10_000).fill({ all_cwes: Array(20).fill([]) }))).toBeNull();
    expect(audit(good, [{ ...finding, all_cwes: Array(100).fill(79) }])).toHaveLength(1);
  });

  it('needs a decision too', () => {
    expect(parseRepositoryResult(bytes({ evidence: good, findings: [] }))).toBeNull();
  });

  const finding = { kind: 'vulnerability', file: 'a.py' };
  it.each([
    [finding, true],
    [
      { ...finding, line: 3, cwe: 'CWE-79', all_cwes: [79, '80'], title: 't', description: 'd', severity: 9 },
      true,
    ],
    [
      { ...finding, line: null, cwe: null, all_cwes: null, title: null, description: null, package: null },
      true,
    ],
    [{ kind: 'secret', file: '' }, true],
    [{ kind: 'bug', file: 'a.py' }, false],
    [{ file: 'a.py' }, false],
    [{ kind: 'secret' }, false],
    [{ ...finding, line: 'three' }, false],
    [{ ...finding, line: 1.5 }, false],
    [{ ...finding, all_cwes: 'CWE-79' }, false],
  ])('reads the finding %j: %s', (one, isFine) => {
    expect(audit(good, [one])).toEqual(isFine ? [one] : null);
  });
});
