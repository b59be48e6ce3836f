import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { realTasksSchema, realTaskTables } from '../../scripts/tasks/real-tasks.ts';

const read = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const tasks = realTasksSchema.parse(JSON.parse(read('real-tasks.json')));

describe('docs/real-tasks.md', () => {
  it('lists each of the 89 tasks once, by name, with its state', () => {
    const names = tasks.map(({ task }) => task);
    expect(names).toEqual([...new Set(names)].sort());
    expect(names).toHaveLength(89);
  });

  it('says for each that is not checked why, and for the others in which mode they are', () => {
    const incomplete = tasks.filter(({ state, verifier, reason }) =>
      state === 'checked' ? verifier === null || reason !== null : reason === null,
    );
    expect(incomplete).toEqual([]);
  });

  it('has the tables of docs/real-tasks.json', () => {
    expect(read('real-tasks.md')).toContain(realTaskTables(tasks));
  });
});
