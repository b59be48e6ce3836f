import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';

const RELATIVE = /(?:\bfrom|\bimport|\bimport\()\s*'(\.{1,2}\/[^']+)'/g;
const QUOTED = /'((?:@[a-z0-9._-]+\/)?[a-z0-9._-]+)(?:\/[^'\n]*)?'/g;

/**
 * The source files that `entry` imports, over every step, types included: what is in an image can be compiled
 * by whoever reads it.
 * @param root a checkout; the paths are relative to it, sorted.
 * @throws build_source_invalid for a file that is not there.
 */
export function importedFiles(root: string, entry: string): string[] {
  const seen = new Set<string>();
  const waiting = [entry];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const [, target = ''] of readSource(root, path).matchAll(RELATIVE))
      waiting.push(posix.join(dirname(path), target));
  }
  return [...seen].sort();
}

/**
 * Those of `names` that the files import, or name in a string: a grammar is resolved by its path, not imported.
 */
export function namedPackages(root: string, files: readonly string[], names: readonly string[]): string[] {
  const known = new Set(names);
  const named = files.flatMap((path) =>
    [...readSource(root, path).matchAll(QUOTED)]
      .map(([, name = '']) => name)
      .filter((name) => known.has(name)),
  );
  return [...new Set(named)].sort();
}

function readSource(root: string, path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (cause) {
    throw new EvaluatorError('build_source_invalid', `${path} is not in this commit`, { cause });
  }
}
