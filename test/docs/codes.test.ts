import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CODES, type Code, EvaluatorError, type Fault } from '../../guest/errors.ts';
import { EXIT, exitCodeOf, SIGNAL_EXIT } from '../../guest/process/exit-codes.ts';
import { FAILURE_CODES } from '../../guest/wire/score-record.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
const page = read('docs/codes.md');
const codes = Object.keys(CODES) as Code[];

/** The rows below a table's head, as trimmed cells; `head` is the head's first cell. */
function rowsOf(text: string, head: string): string[][] {
  return text
    .split('\n\n')
    .filter((block) => block.startsWith(`| ${head} |`))
    .flatMap((block) => block.trim().split('\n').slice(2))
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim().replaceAll('`', '')));
}

describe('docs/codes.md', () => {
  const rows = rowsOf(page, 'code');

  it('lists every code once, with its fault, and no other', () => {
    const listed = rows.map(([code, fault]) => `${code} ${fault}`).sort();
    expect(listed).toEqual(codes.map((code) => `${code} ${CODES[code]}`).sort());
  });

  it('says of each what it means, in one sentence', () => {
    for (const [code, , meaning] of rows) expect(meaning, code).toMatch(/^[^.].{10,}\.$/);
  });

  it('lists every reason for a failed rep once, and no other', () => {
    const listed = rowsOf(page, 'failure').map(([failure]) => failure);
    expect(listed.toSorted()).toEqual([...FAILURE_CODES].sort());
  });

  it('names the stages in their order', () => {
    const union = /type Stage = (.+);/.exec(read('guest/stages/journal.ts'))?.[1] ?? '';
    const stages = [...union.matchAll(/'(\w+)'/g)].map(([, stage]) => `\`${stage}\``);
    expect(stages).toHaveLength(5);
    expect(page).toContain(stages.join(', '));
  });

  it('gives the exit code of every code by its fault, result_refused apart', () => {
    const byFault = new Map(rowsOf(page, 'fault').map(([fault, , exit]) => [fault as Fault, Number(exit)]));
    for (const code of codes.filter((code) => code !== 'result_refused')) {
      expect(exitCodeOf(new EvaluatorError(code, '')), code).toBe(byFault.get(CODES[code]));
    }
    expect(exitCodeOf(new EvaluatorError('result_refused', ''))).toBe(EXIT.rejected);
    expect(page).toContain(`\`result_refused\` ends with ${EXIT.rejected}.`);
    expect(page).toContain(`${SIGNAL_EXIT.SIGINT} (SIGINT) or ${SIGNAL_EXIT.SIGTERM} (SIGTERM)`);
  });
});

it('the README lists every exit code, and no other', () => {
  const listed = rowsOf(read('README.md'), 'exit code').flatMap(([cell]) => cell?.split(', ') ?? []);
  const exits = [...Object.values(EXIT), ...Object.values(SIGNAL_EXIT)];
  expect(listed.map(Number).toSorted()).toEqual(exits.toSorted());
});

it('every code is used somewhere', () => {
  const files = globSync('{guest,challenge,simulator,compose,scripts}/**/*.ts', { cwd: fileURLToPath(ROOT) });
  const source = files
    .filter((path) => path !== 'guest/errors.ts')
    .map(read)
    .join('\n');
  const used = new Set([...source.matchAll(/'([a-z0-9_]+)'/g)].map(([, literal]) => literal));
  expect(codes.filter((code) => !used.has(code))).toEqual([]);
});
