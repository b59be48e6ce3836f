import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { normalizeName } from './requirements.ts';
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
const ALWAYS = ['pytest', 'pytest-json-ctrf'];

/** What one task's script asks for: `name==version` or a name, and Debian packages. */
export type Requests = { python: readonly string[]; apt: readonly string[] };

/** The part of what is served that some tasks need; a request that nobody serves adds nothing. */
export function selectFor(tasks: readonly Requests[], served: Served = readServed()): Selection {
  const always = [...served.packages.keys()].filter((key) => ALWAYS.includes(nameOf(key)));
  // pytest versions one by one: two of a name are never in one environment.
  const environments = [...always.map((key) => [key]), ...tasks.map(({ python }) => python)].map((asked) =>
    resolve(asked, served),
  );
  const keys = new Set(environments.flatMap(({ asked }) => asked));
  const packages = new Map([...served.packages].filter(([key]) => keys.has(key)));
  const aptAsked = new Set(tasks.flatMap(({ apt }) => apt));
  const apt = new Map(
    [...served.apt].filter(([name, { groups }]) => groups.length === 0 || aptAsked.has(name)),
  );
  return {
    groups: new Set([...packages.values(), ...apt.values()].flatMap(({ groups }) => groups)),
    wheels: new Set(environments.flatMap(({ wheels }) => wheels)),
    served: { packages, apt },
  };
}

/** As the front does it: what is asked for by name takes the place of what another package needs. */
function resolve(requests: readonly string[], served: Served): { asked: string[]; wheels: string[] } {
  const asked = requests.flatMap((request) => servedKey(request, served) ?? []);
  const byName = new Map(asked.map((key) => [nameOf(key), key]));
  for (const need of asked.flatMap((key) => served.packages.get(key)?.needs ?? [])) {
    if (!byName.has(nameOf(need))) byName.set(nameOf(need), need);
  }
  return { asked, wheels: [...byName.values()] };
}

/** The line of the table that answers `name==version`, or a name alone; null for what is not served. */
export function servedKey(request: string, served: Served): string | null {
  const [name = '', version] = request.split('==');
  const wanted = normalizeName(name);
  const keys = [...served.packages.keys()];
  return (
    keys.find((key) => (version === undefined ? nameOf(key) === wanted : key === `${wanted}==${version}`)) ??
    null
  );
}

function nameOf(key: string): string {
  return key.split('==')[0] ?? '';
}

export const BASE_SELECTION: Selection = selectFor([]);

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
