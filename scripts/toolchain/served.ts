import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Interpreter, readInterpreters } from './interpreters.ts';

const TOOLS = join(import.meta.dirname, '../../guest/tools');
const LIB = join(TOOLS, 'front/lib');
/** What a volume with another Python has beside, or behind, the files of every volume. */
export const PYTHONS = join(TOOLS, 'pythons');

/** A Python package: what it needs at run time, and groups of debian.lock with libraries that it needs. */
export type ServedPackage = { needs: readonly string[]; groups: readonly string[] };

/** A Debian package: the groups of debian.lock that its programs come from, if any are needed. */
export type ServedApt = { groups: readonly string[] };

/** Python packages by `name==version`. */
export type ServedPackages = ReadonlyMap<string, ServedPackage>;

/** Another Python, with packages of its own. */
export type ServedPython = { interpreter: Interpreter; packages: ServedPackages };

/** What can be served: packages of the volume's own Python and of the others, Debian packages by name. */
export type Served = {
  packages: ServedPackages;
  others: readonly ServedPython[];
  apt: ReadonlyMap<string, ServedApt>;
};

/** Reads the tables that the front itself reads. @throws toolchain_invalid */
export function readServed(): Served {
  return {
    packages: packagesOf(join(LIB, 'packages.txt')),
    others: readInterpreters().map((interpreter) => ({
      interpreter,
      packages: packagesOf(join(PYTHONS, packageTable(interpreter.python))),
    })),
    apt: new Map(
      rows(join(LIB, 'apt-packages.txt')).map(([name = '', ...words]) => [name, { groups: groupsOf(words) }]),
    ),
  };
}

/** The table of another Python's packages, in the volume. */
export function packageTable(python: string): string {
  return `front/lib/packages-${python}.txt`;
}

function packagesOf(table: string): ServedPackages {
  return new Map(
    rows(table).map(([key = '', ...words]) => [
      key,
      { needs: words.filter((word) => !GROUP.test(word)), groups: groupsOf(words) },
    ]),
  );
}

const GROUP = /^\[.+\]$/;

function groupsOf(words: readonly string[]): string[] {
  return words.filter((word) => GROUP.test(word)).map((word) => word.slice(1, -1));
}

function rows(table: string): string[][] {
  return readFileSync(table, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => line.trim().split(/\s+/));
}
