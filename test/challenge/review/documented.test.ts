import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { REVIEW_CHECKS } from '../../../challenge/review/verify.ts';
import { CODES } from '../../../guest/errors.ts';
import { FINDING_CLASSES } from '../../../guest/wire/review-decision.ts';

const text = readFileSync(new URL('../../../docs/review.md', import.meta.url), 'utf8');

/** The rows of a section's table, as trimmed cells without the head. */
function rowsOf(title: string): string[][] {
  const section = text.split('\n## ').find((part) => part.startsWith(title)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
}
const codesIn = (cell = '') => cell.split(', ').filter(Boolean);

it('docs/review.md lists the checks in their order, with codes that exist', () => {
  const rows = rowsOf('What a report is checked for');
  expect(rows.flatMap(([names]) => codesIn(names))).toEqual([...REVIEW_CHECKS]);
  for (const code of rows.flatMap(([, , codes]) => codesIn(codes)))
    expect(Object.keys(CODES)).toContain(code);
});

it('and every finding with its class', () => {
  const documented = rowsOf('Static findings').map(([code, verdict]) => [code, verdict]);
  expect(Object.fromEntries(documented)).toEqual(FINDING_CLASSES);
});

it('and what refuses admission, each with a code of its own', () => {
  const codes = rowsOf('What admits an eval').map(([, code]) => code ?? '');
  const own = codes.filter((code) => Object.hasOwn(CODES, code));
  expect(own).toHaveLength(codes.length - 1);
  expect(new Set(own).size).toBe(own.length);
});
