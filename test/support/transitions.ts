import { readFileSync } from 'node:fs';

type Table<S extends string, E extends string> = Readonly<Record<S, Readonly<Partial<Record<E, S>>>>>;

/** Every row of a machine's table, as `from event to`, ascending. */
export function rowsOfMachine<S extends string, E extends string>(
  states: readonly S[],
  events: readonly E[],
  table: Table<S, E>,
): string[] {
  return states
    .flatMap((from) =>
      events.flatMap((event) => {
        const to = table[from][event];
        return to === undefined ? [] : [`${from} ${event} ${to}`];
      }),
    )
    .toSorted();
}

/** The rows of a section of docs/ledger.md, in the same form. */
export function rowsOfDocument(heading: string): string[] {
  const text = readFileSync(new URL('../../docs/ledger.md', import.meta.url), 'utf8');
  const section = text.split('\n## ').find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| (\w+) +\| (\w+) +\| (\w+) +\|/gm)]
    .map(([, from, event, to]) => `${from} ${event} ${to}`)
    .filter((row) => row !== 'from event to')
    .toSorted();
}
