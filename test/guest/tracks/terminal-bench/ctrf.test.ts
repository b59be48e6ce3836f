import { describe, expect, it } from 'vitest';
import { MAX_CTRF_BYTES, parseCtrf } from '../../../../guest/tracks/terminal-bench/ctrf.ts';

const SUMMARY = { tests: 2, passed: 1, failed: 1, skipped: 0, pending: 0, other: 0 };
const TESTS = [
  { name: 'test_outputs.py::test_a', status: 'passed', duration: 0.000_67, file_path: 'test_outputs.py' },
  { name: 'test_outputs.py::test_b', status: 'failed', duration: 0.1, trace: '>  assert 0', message: 'é' },
];
const report = (results: object) => ({
  results: { tool: { name: 'pytest', version: '8.4.1' }, summary: SUMMARY, tests: TESTS, ...results },
});
const parse = (value: unknown) => parseCtrf(Buffer.from(JSON.stringify(value)));

describe('parseCtrf', () => {
  it('counts the tests of a report', () => {
    expect(parse(report({}))).toEqual({ passed: 1, tests: 2 });
  });

  it('reads newer reports, with more members at every level', () => {
    const newer = {
      reportFormat: 'CTRF',
      specVersion: '1.0.0',
      generatedBy: 'pytest',
      ...report({
        summary: { ...SUMMARY, flaky: 0, suites: 1, duration: 48 },
        environment: { osPlatform: 'linux' },
      }),
    };
    expect(parse(newer)).toEqual({ passed: 1, tests: 2 });
  });

  it('takes a collection error for a report: no tests, but pytest ran', () => {
    expect(parse(report({ summary: { ...SUMMARY, tests: 0, passed: 0, failed: 0 }, tests: [] }))).toEqual({
      passed: 0,
      tests: 0,
    });
  });

  it.each<[string, unknown]>([
    ['an empty object', {}],
    ['a list', []],
    ['null', null],
    ['no tool', report({ tool: undefined })],
    ['no summary', report({ summary: undefined })],
    ['no tests', report({ tests: undefined })],
    ['tests that are no list', report({ tests: {} })],
    ['a test without status', report({ tests: [{ name: 'a' }, { name: 'b' }] })],
    ['an unknown status', report({ tests: TESTS.map((test) => ({ ...test, status: 'great' })) })],
    ['a count that is no number', report({ summary: { ...SUMMARY, passed: '1' } })],
    ['a fraction of a test', report({ summary: { ...SUMMARY, passed: 0.5 } })],
    ['more tests in the summary', report({ summary: { ...SUMMARY, tests: 3 } })],
    ['more passes in the summary', report({ summary: { ...SUMMARY, passed: 2 } })],
  ])('sees no proof in %s', (_, value) => {
    expect(parse(value)).toBeNull();
  });

  it.each([
    ['nothing', ''],
    ['half a report', '{"results":'],
    ['a key twice', '{"results":{},"results":{}}'],
    ['a byte order mark', `\ufeff${JSON.stringify(report({}))}`],
    ['a hundred thousand levels', '['.repeat(100_000) + ']'.repeat(100_000)],
  ])('sees no proof in %s', (_, text) => {
    expect(parseCtrf(Buffer.from(text))).toBeNull();
  });

  it('takes ten thousand tests and not one more: an agent may have written them to hold up our timers', () => {
    const many = (count: number) =>
      report({
        summary: { ...SUMMARY, tests: count, passed: count, failed: 0 },
        tests: Array(count).fill({ name: 'a', status: 'passed' }),
      });
    expect(parse(many(10_000))).toEqual({ passed: 10_000, tests: 10_000 });
    expect(parse(many(10_001))).toBeNull();
  });

  it('reads no report beyond its cap', () => {
    expect(parseCtrf(Buffer.alloc(MAX_CTRF_BYTES + 1, 0x20))).toBeNull();
  });
});
