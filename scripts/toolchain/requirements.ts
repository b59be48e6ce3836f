import { EvaluatorError } from '../../guest/errors.ts';

/** One pinned package: normalised name, exact version, SHA-256 of the file; `sdist`: where its authors made no wheel. */
export type Requirement = { name: string; version: string; sha256: string; form: 'wheel' | 'sdist' };

const LINE = /^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!]+) --hash=sha256:([0-9a-f]{64})( # sdist)?$/;

/** A package name as PEP 503 compares it: lower case, runs of `-_.` as one dash. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

/**
 * Reads requirements.txt: one `name==version --hash=sha256:HEX` a line, ` # sdist` behind it for a source archive, `#` comments, the
 * same name in several versions allowed, the same version twice not.
 * @throws toolchain_invalid with the line number.
 */
export function parseRequirements(text: string): Requirement[] {
  const seen = new Set<string>();
  return text.split('\n').flatMap((raw, index) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) return [];
    const match = LINE.exec(line);
    if (!match) throw invalid(index, `expected "name==version --hash=sha256:HEX", found "${line}"`);
    const [, name = '', version = '', sha256 = '', sdist] = match;
    const form = sdist === undefined ? 'wheel' : 'sdist';
    const requirement: Requirement = { name: normalizeName(name), version, sha256, form };
    const key = packageKey(requirement);
    if (seen.has(key)) throw invalid(index, `${key} is pinned twice`);
    seen.add(key);
    return [requirement];
  });
}

/** How the front and its package table name one version of one package. */
export function packageKey(requirement: { name: string; version: string }): string {
  return `${requirement.name}==${requirement.version}`;
}

function invalid(index: number, problem: string): EvaluatorError {
  return new EvaluatorError('toolchain_invalid', `requirements.txt line ${index + 1}: ${problem}`);
}
