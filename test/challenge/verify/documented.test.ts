import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { RESULT_CHECKS } from '../../../challenge/verify/result.ts';
import { CODES } from '../../../guest/errors.ts';

const text = readFileSync(new URL('../../../docs/verification.md', import.meta.url), 'utf8');
const section = text.split('\n## ').find((part) => part.startsWith('A RESULT')) ?? '';
const rows = section
  .split('\n')
  .filter((line) => /^\| (?!check )[a-z_]+ *\|/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()));

it('docs/verification.md lists the checks in their order', () => {
  expect(rows.map(([, name]) => name)).toEqual([...RESULT_CHECKS]);
});

it('and only codes that exist', () => {
  for (const code of rows.flatMap(([, , , codes]) => codes?.split(', ') ?? [])) {
    expect(Object.keys(CODES)).toContain(code);
  }
});

it('and every code that the record is refused with', () => {
  const listed = new Set(rows.flatMap(([, , , codes]) => codes?.split(', ') ?? []));
  const folder = new URL('../../../guest/consensus/', import.meta.url);
  const source = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'));
  const thrown = new Set([...source.join().matchAll(/'(record_\w+)'/g)].map(([, code]) => code));
  expect(thrown.size).toBeGreaterThan(10);
  for (const code of thrown) expect(listed).toContain(code);
});
