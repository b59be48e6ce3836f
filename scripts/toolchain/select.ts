import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readServed, type Served } from './served.ts';
import type { ToolFile } from './tool-file.ts';

const LIB = join(import.meta.dirname, '../../guest/tools/front/lib');

/** What goes into a volume beside what is always there. */
export type Selection = {
  /** Groups of debian.lock. */
  groups: ReadonlySet<string>;
  /** Wheels by `name==version`, with all that they need. */
  wheels: ReadonlySet<string>;
  /** What the volume serves: the front's own tables are cut down to it. */
  served: Served;
};

/** Python packages of every volume, in each version that is pinned. */
const BASE = ['pytest', 'pytest-json-ctrf'];

/** What one or more tasks ask for, as `name==version` or a name, and as Debian packages. */
export type Requests = { python: readonly string[]; apt: readonly string[] };

/** The part of what is served that some tasks need; a request that nobody serves adds nothing. */
export function selectFor(requests: Requests, served: Served = readServed()): Selection {
  const isAsked = (key: string) =>
    requests.python.includes(key) || [...BASE, ...requests.python].includes(key.split('==')[0] ?? '');
  const packages = new Map([...served.packages].filter(([key]) => isAsked(key)));
  const apt = new Map(
    [...served.apt].filter(([name, row]) => row.group === null || requests.apt.includes(name)),
  );
  return {
    groups: new Set([...apt.values()].flatMap(({ group }) => group ?? [])),
    wheels: new Set([...packages].flatMap(([key, needs]) => [key, ...needs])),
    served: { packages, apt },
  };
}

export const BASE_SELECTION: Selection = selectFor({ python: [], apt: [] });

/** The two tables that the front reads, with what this volume holds and no more. */
export function frontTables(selection: Selection): ToolFile[] {
  const kept = (name: string, has: (key: string) => boolean): ToolFile => {
    const lines = readFileSync(join(LIB, name), 'utf8').split('\n');
    const rows = lines.filter(
      (line) => line.trim() === '' || line.startsWith('#') || has(line.split(' ')[0] ?? ''),
    );
    return { path: `front/lib/${name}`, mode: 0o644, bytes: Buffer.from(rows.join('\n')) };
  };
  return [
    kept('packages.txt', (key) => selection.served.packages.has(key)),
    kept('apt-packages.txt', (name) => selection.served.apt.has(name)),
  ];
}
