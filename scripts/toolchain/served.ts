import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIB = join(import.meta.dirname, '../../guest/tools/front/lib');

/** What the front serves: Python packages as `name==version` with all that each needs, and Debian packages. */
export type Served = { packages: ReadonlyMap<string, readonly string[]>; apt: ReadonlySet<string> };

/** Reads the two tables that the front itself reads. */
export function readServed(): Served {
  return {
    packages: new Map(rows('packages.txt').map((row) => [row[0] ?? '', row.slice(1)])),
    apt: new Set(rows('apt-packages.txt').map((row) => row[0] ?? '')),
  };
}

function rows(name: string): string[][] {
  return readFileSync(join(LIB, name), 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => line.trim().split(/\s+/));
}
