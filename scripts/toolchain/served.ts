import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIB = join(import.meta.dirname, '../../guest/tools/front/lib');

/** A Debian package that the volume stands for. */
export type ServedApt = {
  /** The group of debian.lock that its programs come from; null when nothing is needed beyond what is always there. */
  group: string | null;
};

/** What can be served: Python packages as `name==version` with all that each needs, and Debian packages. */
export type Served = {
  packages: ReadonlyMap<string, readonly string[]>;
  apt: ReadonlyMap<string, ServedApt>;
};

/** Reads the two tables that the front itself reads. */
export function readServed(): Served {
  return {
    packages: new Map(rows('packages.txt').map((row) => [row[0] ?? '', row.slice(1)])),
    apt: new Map(rows('apt-packages.txt').map(([name = '', ...words]) => [name, { group: groupOf(words) }])),
  };
}

function groupOf(words: readonly string[]): string | null {
  return words.find((word) => /^\[.+\]$/.test(word))?.slice(1, -1) ?? null;
}

function rows(name: string): string[][] {
  return readFileSync(join(LIB, name), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => line.trim().split(/\s+/));
}
