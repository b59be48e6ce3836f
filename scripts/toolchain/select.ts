import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Interpreter, OWN_PYTHON, servedPython } from './interpreters.ts';
import { normalizeName } from './requirements.ts';
import { PYTHONS, packageTable, readServed, type Served, type ServedPackages } from './served.ts';
import type { ToolFile } from './tool-file.ts';

const TOOLS = join(import.meta.dirname, '../../guest/tools');

/** What goes into a volume beside what is always there. */
export type Selection = {
  /** Groups of debian.lock. */
  groups: ReadonlySet<string>;
  /** Wheels of the volume's own Python by `name==version`, with all that they need. */
  wheels: ReadonlySet<string>;
  /** Those of each other Python that is asked for. */
  otherWheels: ReadonlyMap<string, ReadonlySet<string>>;
  /** What the volume serves: the front's own tables are cut down to it. */
  served: Served;
};

/** Python packages of every volume, for each of its Pythons, in each version that is pinned. */
const ALWAYS = ['pytest', 'pytest-json-ctrf'];

/** What one task's script asks for: `name==version` or a name, Debian packages, and Pythons if it names any. */
export type Requests = {
  python: readonly string[];
  apt: readonly string[];
  interpreters?: readonly string[];
};

/** The part of what is served that some tasks need; a request that nobody serves adds nothing. */
export function selectFor(tasks: readonly Requests[], served: Served = readServed()): Selection {
  const askedOf = (python: string) => tasks.filter((task) => pythonsOf(task, served).has(python));
  const own = cut(served.packages, askedOf(OWN_PYTHON));
  const others = served.others.flatMap(({ interpreter, packages }) => {
    const asking = askedOf(interpreter.python);
    return asking.length === 0 ? [] : [{ interpreter, ...cut(packages, asking) }];
  });
  const aptAsked = new Set(tasks.flatMap(({ apt }) => apt));
  const apt = new Map(
    [...served.apt].filter(([name, { groups }]) => groups.length === 0 || aptAsked.has(name)),
  );
  const rows = [own, ...others].flatMap(({ packages }) => [...packages.values()]);
  return {
    groups: new Set([
      ...[...rows, ...apt.values()].flatMap(({ groups }) => groups),
      ...others.map(({ interpreter }) => interpreter.group),
    ]),
    wheels: own.wheels,
    otherWheels: new Map(others.map(({ interpreter, wheels }) => [interpreter.python, wheels])),
    served: {
      packages: own.packages,
      others: others.map(({ interpreter, packages }) => ({ interpreter, packages })),
      apt,
    },
  };
}

/** The Pythons that a script's packages are for: the volume's own unless it names others. */
export function pythonsOf(
  { interpreters = [] }: Pick<Requests, 'interpreters'>,
  served: Served,
): Set<string> {
  const others = served.others.map(({ interpreter }) => interpreter);
  const named = interpreters.flatMap((request) => servedPython(request, others) ?? []);
  return new Set(named.length === 0 ? [OWN_PYTHON] : named);
}

/** Of one Python's table what some tasks need, and the wheels behind it. */
function cut(
  table: ServedPackages,
  tasks: readonly Requests[],
): { packages: ServedPackages; wheels: ReadonlySet<string> } {
  const always = [...table.keys()].filter((key) => ALWAYS.includes(nameOf(key)));
  // pytest versions one by one: two of a name are never in one environment.
  const environments = [...always.map((key) => [key]), ...tasks.map(({ python }) => python)].map((asked) =>
    resolve(asked, table),
  );
  const keys = new Set(environments.flatMap(({ asked }) => asked));
  return {
    packages: new Map([...table].filter(([key]) => keys.has(key))),
    wheels: new Set(environments.flatMap(({ wheels }) => wheels)),
  };
}

/** As the front does it: what is asked for by name takes the place of what another package needs. */
function resolve(requests: readonly string[], table: ServedPackages): { asked: string[]; wheels: string[] } {
  const asked = requests.flatMap((request) => servedKey(request, table) ?? []);
  const byName = new Map(asked.map((key) => [nameOf(key), key]));
  for (const need of asked.flatMap((key) => table.get(key)?.needs ?? [])) {
    if (!byName.has(nameOf(need))) byName.set(nameOf(need), need);
  }
  return { asked, wheels: [...byName.values()] };
}

/** The line of the table that answers `name==version`, or a name alone; null for what is not served. */
export function servedKey(request: string, table: ServedPackages): string | null {
  const [name = '', version] = request.split('==');
  const wanted = normalizeName(name);
  const keys = [...table.keys()];
  return (
    keys.find((key) => (version === undefined ? nameOf(key) === wanted : key === `${wanted}==${version}`)) ??
    null
  );
}

function nameOf(key: string): string {
  return key.split('==')[0] ?? '';
}

export const BASE_SELECTION: Selection = selectFor([]);

/** The tables that the front reads, with what this volume holds and no more. */
export function frontTables(selection: Selection): ToolFile[] {
  const kept = (root: string, path: string, has: (key: string) => boolean): ToolFile => {
    const lines = readFileSync(join(root, path), 'utf8').split('\n');
    const rows = lines.filter(
      (line) => line.trim() === '' || line.startsWith('#') || has(line.split(' ')[0] ?? ''),
    );
    return { path, mode: 0o644, bytes: Buffer.from(rows.join('\n')) };
  };
  const { packages, others, apt } = selection.served;
  return [
    kept(TOOLS, 'front/lib/packages.txt', (key) => packages.has(key)),
    kept(TOOLS, 'front/lib/apt-packages.txt', (name) => apt.has(name)),
    ...others.map(({ interpreter, packages: table }) =>
      kept(PYTHONS, packageTable(interpreter.python), (key) => table.has(key)),
    ),
    ...(others.length > 0 ? [pythonTable(others.map(({ interpreter }) => interpreter))] : []),
  ];
}

/** By which versions the front is asked for another Python. */
function pythonTable(others: readonly Interpreter[]): ToolFile {
  const rows = others.map(({ python, version }) => `${python} ${version}\n`);
  return { path: 'front/lib/pythons.txt', mode: 0o644, bytes: Buffer.from(rows.join('')) };
}
