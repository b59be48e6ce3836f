import { EvaluatorError } from '../../guest/errors.ts';

/** One pinned Debian package: name, exact version, SHA-256 of its .deb. */
export type DebianPackage = { name: string; version: string; sha256: string };

/** What one part of the toolchain is made from; `base` is always there. */
export type LockGroup = { name: string; packages: readonly DebianPackage[] };

const GROUP = /^\[([a-z0-9][a-z0-9.+-]*)\]$/;
const LINE = /^([a-z0-9][a-z0-9.+-]+) ([0-9][A-Za-z0-9.+~:-]*) ([0-9a-f]{64})$/;

/**
 * Reads debian.lock: `[group]` headings and `name version sha256` lines below them; `#` comments. A package that
 * stands in two groups has the same version in both.
 * @throws toolchain_invalid with the line number.
 */
export function parseLock(text: string): LockGroup[] {
  const groups: { name: string; packages: DebianPackage[] }[] = [];
  const known = new Map<string, string>();
  text.split('\n').forEach((raw, index) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) return;
    const group = GROUP.exec(line)?.[1];
    if (group !== undefined) {
      if (groups.some(({ name }) => name === group)) throw invalid(index, `group ${group} comes twice`);
      groups.push({ name: group, packages: [] });
      return;
    }
    const [, name = '', version = '', sha256 = ''] = LINE.exec(line) ?? [];
    const packages = groups.at(-1)?.packages;
    if (name === '' || packages === undefined)
      throw invalid(index, `expected "[group]" or "name version sha256", found "${line}"`);
    const pin = `${version} ${sha256}`;
    if (packages.some((one) => one.name === name)) throw invalid(index, `${name} is pinned twice`);
    if ((known.get(name) ?? pin) !== pin) throw invalid(index, `${name} is pinned in two versions`);
    known.set(name, pin);
    packages.push({ name, version, sha256 });
  });
  return groups;
}

/**
 * The lock with other versions of the same packages: comments, groups and order stay.
 * @param versions by package name; every package of the lock is in it.
 */
export function withVersions(text: string, versions: ReadonlyMap<string, DebianPackage>): string {
  return text
    .split('\n')
    .map((line) => {
      const [, name = ''] = LINE.exec(line.trim()) ?? [];
      const found = versions.get(name);
      return found === undefined ? line : `${found.name} ${found.version} ${found.sha256}`;
    })
    .join('\n');
}

/** The packages whose pins differ between two texts of a lock, with both versions. */
export function changedPackages(before: string, after: string): { name: string; from: string; to: string }[] {
  const pins = (text: string) =>
    new Map(parseLock(text).flatMap(({ packages }) => packages.map((one) => [one.name, one] as const)));
  const old = pins(before);
  return [...pins(after)].flatMap(([name, to]) => {
    const from = old.get(name);
    const isSame = from?.version === to.version && from.sha256 === to.sha256;
    return isSame ? [] : [{ name, from: from?.version ?? 'none', to: to.version }];
  });
}

/** The packages of the chosen groups, each once, in the lock's order. */
export function packagesOf(groups: readonly LockGroup[], chosen: ReadonlySet<string>): DebianPackage[] {
  const packages = new Map<string, DebianPackage>();
  for (const group of groups) {
    if (!chosen.has(group.name)) continue;
    for (const one of group.packages) packages.set(one.name, one);
  }
  return [...packages.values()];
}

function invalid(index: number, problem: string): EvaluatorError {
  return new EvaluatorError('toolchain_invalid', `debian.lock line ${index + 1}: ${problem}`);
}
