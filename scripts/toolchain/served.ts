import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIB = join(import.meta.dirname, '../../guest/tools/front/lib');

/** A Python package: what it needs at run time, and groups of debian.lock with libraries that it needs. */
export type ServedPackage = { needs: readonly string[]; groups: readonly string[] };

/** A Debian package: the groups of debian.lock that its programs come from, if any are needed. */
export type ServedApt = { groups: readonly string[] };

/** What can be served: Python packages by `name==version`, Debian packages by name. */
export type Served = {
  packages: ReadonlyMap<string, ServedPackage>;
  apt: ReadonlyMap<string, ServedApt>;
};

/** Reads the two tables that the front itself reads. */
export function readServed(): Served {
  return {
    packages: new Map(
      rows('packages.txt').map(([key = '', ...words]) => [
        key,
        { needs: words.filter((word) => !GROUP.test(word)), groups: groupsOf(words) },
      ]),
    ),
    apt: new Map(
      rows('apt-packages.txt').map(([name = '', ...words]) => [name, { groups: groupsOf(words) }]),
    ),
  };
}

const GROUP = /^\[.+\]$/;

function groupsOf(words: readonly string[]): string[] {
  return words.filter((word) => GROUP.test(word)).map((word) => word.slice(1, -1));
}

function rows(name: string): string[][] {
  return readFileSync(join(LIB, name), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => line.trim().split(/\s+/));
}
