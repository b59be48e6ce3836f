import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

interface Row {
  name: string;
  file: string;
  container: string;
  brokered: string;
}

const rows = read('docs/hostile-cases.md')
  .split('\n')
  .filter((line) => /^\| (?!case |---)/.test(line))
  .map((line): Row => {
    const [name = '', , file = '', container = '', brokered = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { name, file, container, brokered };
  });

/**
 * The test of a file that has this title, or the group that has it, with what its outermost group is run over;
 * null: there is none.
 */
function testOf(file: string, title: string): string | null {
  const quoted = [`'${title}'`, `"${title}"`];
  const isIn = (text: string) => quoted.some((one) => text.includes(one));
  const group = read(`test/${file}`)
    .split(/^(?=describe|it)/m)
    .slice(1)
    .find(isIn);
  if (group === undefined) return null;
  const [head = '', ...tests] = group.split(/^(?= {2}it)/m);
  return head + (tests.find(isIn) ?? '');
}

const titleIn = (cell: string) => /^`(.+)`$/.exec(cell)?.[1] ?? null;

/** What a test must be run over for a brokered agent's cell to be true. */
const RUN_FOR: Readonly<Record<string, RegExp>> = {
  'the same, by exec': /KINDS/,
  'the same, by exec and itself': /PLACES/,
};

describe('docs/hostile-cases.md', () => {
  it('has the cases of agents, of outputs and of six reps', () => {
    expect(rows.length).toBeGreaterThan(60);
  });

  it.each(rows)('$name', ({ file, container, brokered }) => {
    const titles = [container, brokered].map(titleIn).filter((title) => title !== null);
    expect(titles).not.toEqual([]);
    for (const title of titles) expect(testOf(file, title), `${file}: ${title}`).not.toBeNull();
    const runFor = RUN_FOR[brokered];
    if (runFor) expect(testOf(file, titleIn(container) ?? '')).toMatch(runFor);
    else expect(brokered).toMatch(/^(?:|`.+`)$/);
  });
});
