import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parseAgentPackage } from '../../../../guest/agent/package.ts';
import { presentMembers } from '../../../../guest/review/show.ts';
import type { Member } from '../../../../guest/review/static/findings.ts';
import { ANALYSIS_DEADLINE_MS, analysePackage } from '../../../../guest/review/static/run.ts';
import { MANIFEST, rawZip } from '../../../support/raw-zip.ts';
import { codesIn, knowledge, membersOf } from '../../../support/review-agents.ts';
import { rejectionCode } from '../../../support/throws.ts';

const MB = 1_000_000;
const codes = async (members: readonly Member[]) => {
  const { findings } = await analysePackage({ members, knowledge }, ANALYSIS_DEADLINE_MS);
  return [...new Set(findings.map(({ code }) => code))].sort();
};

describe('hostile packages', () => {
  it.each<[string, string, string, string[]]>([
    ['a line of 10 MB of code', 'a.py', `x = ${'1+'.repeat(5 * MB)}1`, ['unanalysable']],
    ['a line of 10 MB of data', 'a.json', `"${'a'.repeat(10 * MB)}"`, []],
    ['a line of 10 MB of words', 'a.md', 'note '.repeat(2 * MB), []],
    ['10⁵ open brackets', 'a.py', '['.repeat(100_000), ['unanalysable']],
    ['10⁵ nested brackets', 'a.py', '['.repeat(100_000) + ']'.repeat(100_000), ['unanalysable']],
    ['10⁵ nested calls', 'a.js', 'f('.repeat(100_000) + ')'.repeat(100_000), ['unanalysable']],
    ['10⁵ nested substitutions', 'a.sh', '$('.repeat(100_000), ['unanalysable']],
    ['10⁵ nested templates', 'a.mjs', '`${'.repeat(100_000), ['unanalysable']],
    ['10⁵ here-documents', 'a.sh', 'cat <<A '.repeat(100_000), ['unanalysable']],
    ['a million blank lines', 'a.py', '\n'.repeat(MB), []],
    ['a comment of a million marks', 'a.py', '#'.repeat(MB), []],
    ['a rule of a million dashes', 'a.md', '-'.repeat(MB), []],
    ['a file of NULs', 'a.sh', '\0'.repeat(MB), ['member_not_text']],
    ['a million statements', 'a.py', 'x=1\n'.repeat(250_000), ['unanalysable']],
    [
      'names made of each other',
      'a.py',
      Array.from({ length: 3000 }, (_, i) => `a${i} = a${i + 1} + a${i + 1}`).join('\n'),
      [],
    ],
    [
      'a text doubled forty times',
      'a.py',
      `a = "ab"\n${'a = a + a\n'.repeat(7)}b = ${'a + '.repeat(300)}a\nopen(b * 1000)`,
      [],
    ],
    [
      'a long text in many places',
      'a.py',
      `a = "x" * 65000\n${'f(a + "1")\n'.repeat(20_000)}`,
      ['unanalysable'],
    ],
    [
      'a text that replaces its own letters',
      'a.py',
      `a = "x" * 65000\nb = a.replace("x", a)\n${'open(b)\n'.repeat(200)}`,
      ['unanalysable'],
    ],
    [
      'a list of lists of texts',
      'a.js',
      `const a = ['${'x'.repeat(60_000)}'];\n${'f([a, a, a, a]);\n'.repeat(5000)}`,
      ['unanalysable'],
    ],
  ])('%s ends', async (_, path, source, expected) => {
    expect(await codes(membersOf({ [path]: source }))).toEqual(expected);
  });

  it('stays below 500 MiB with 20 MB of code', async () => {
    const script = join(import.meta.dirname, '../../../support/analyse-much.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [script]);
    const { codes: found, peakRss } = JSON.parse(stdout);
    expect(found).toEqual(['unanalysable']);
    expect(peakRss).toBeLessThan(500 * 1024 * 1024);
  });

  it('a ZIP of 20 MB unpacked is opened, analysed and shown within bounds', async () => {
    const data = Buffer.alloc(2_400_000, 'x = [1, 2, 3]\n# words of no use\n');
    const store = rawZip([MANIFEST, { name: 'a.py', data, method: 8 }]);
    // Compressed by more than 100:1, so refused before anything reads it.
    expect(await rejectionCode(parseAgentPackage(store))).toBe('agent_package_refused');
    const shown = presentMembers(membersOf({ 'a.py': data, 'b.py': data }), 'fence', 300_000);
    expect(shown.truncated).toEqual(['a.py', 'b.py']);
    expect(Buffer.byteLength(JSON.stringify(shown.text))).toBeLessThan(301_000);
  });

  it('refuses what a parser does not finish, and ends its thread', async () => {
    const members = membersOf({ 'a.py': 'x=1\n'.repeat(100_000) });
    expect(await rejectionCode(analysePackage({ members, knowledge }, 1))).toBe('analysis_limit');
  });

  it('what is over a budget does not hide what comes before it', () => {
    const members = membersOf({ 'a.py': 'open("/tests/x")', 'b.py': 'x=1\n'.repeat(250_000) });
    expect(codesIn(members)).toEqual(['reads_hidden_tests', 'unanalysable']);
  });
});
