import { EvaluatorError } from '../../guest/errors.ts';

/** One pinned package: normalised name, exact version, SHA-256 of the file. */
export type Requirement = {
  name: string;
  version: string;
  sha256: string;
  /** `sdist`: where its authors made no wheel. */
  form: 'wheel' | 'sdist';
  /** The one Python that it was compiled for; null: the volume's own, or any. */
  python: string | null;
};

const LINE =
  /^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!]+) --hash=sha256:([0-9a-f]{64})(?: # (sdist|cp3\d+))?$/;

/** A package name as PEP 503 compares it: lower case, runs of `-_.` as one dash. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, '-');
}

/**
 * Reads requirements.txt: one `name==version --hash=sha256:HEX` a line, ` # sdist` behind it for a source archive,
 * ` # cp312` for a wheel that was compiled for that Python, `#` comments, the same name in several versions allowed, the
 * same version twice for one Python not.
 * @throws toolchain_invalid with the line number.
 */
export function parseRequirements(text: string): Requirement[] {
  const seen = new Set<string>();
  return text.split('\n').flatMap((raw, index) => {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) return [];
    const match = LINE.exec(line);
    if (!match) throw invalid(index, `expected "name==version --hash=sha256:HEX", found "${line}"`);
    const [, name = '', version = '', sha256 = '', mark] = match;
    const form = mark === 'sdist' ? 'sdist' : 'wheel';
    const python = mark?.startsWith('cp') ? mark.replace('cp3', '3.') : null;
    const requirement: Requirement = { name: normalizeName(name), version, sha256, form, python };
    const key = packageKey(requirement);
    if (seen.has(`${key} ${python}`)) throw invalid(index, `${key} is pinned twice`);
    seen.add(`${key} ${python}`);
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
