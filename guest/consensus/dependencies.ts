import { EvaluatorError } from '../errors.ts';
import type { Mechanism } from '../wire/mechanism.ts';
import { PACKAGE_VERSION } from '../wire/package-index.ts';
import type { ScoreRecord } from '../wire/score-record.ts';

function problemOf(list: ScoreRecord['dependencies'], listed: ReadonlySet<string>): string | null {
  const seen = new Set<string>();
  for (const { name, version } of list) {
    // The list has normalised names alone, so that no other spelling is on it.
    if (!listed.has(name)) return `${name} is not on the mechanism's list of packages`;
    if (!PACKAGE_VERSION.test(version)) return `${name}: ${version} is no version`;
    if (seen.has(name)) return `${name} is there twice`;
    seen.add(name);
  }
  return null;
}

/**
 * The agent's wheels are ones that the mechanism lets it have, each once; none where it offers no packages. Which
 * bytes they were, the guest alone has seen.
 * @throws record_dependencies_invalid.
 */
export function verifyDependencies(
  { dependencies }: Pick<ScoreRecord, 'dependencies'>,
  { packages }: Pick<Mechanism, 'packages'>,
): void {
  const problem = problemOf(dependencies, new Set(packages?.names));
  if (problem === null) return;
  throw new EvaluatorError('record_dependencies_invalid', `record: dependencies: ${problem}`);
}
