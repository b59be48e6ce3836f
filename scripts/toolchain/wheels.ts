import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { readVerified, sha256Hex, writeAtomic } from './cache.ts';
import { packageKey, type Requirement } from './requirements.ts';
import { runTool } from './run.ts';

// Whatever Python the building machine has, the same files are asked for: wheels that hold no machine code.
const PURE = ['--no-deps', '--only-binary=:all:', '--implementation=py', '--abi=none', '--platform=any'];
const NEWEST_PYTHON_ASKED = '--python-version=3.13';
const REMEDY =
  'Building the toolchain needs python3 with pip and a package index once; afterwards its cache is enough.';

/** The wheels' bytes by `name==version`: from the cache, and what is missing from the package index. */
export function fetchWheels(requirements: readonly Requirement[], cache: string): Map<string, Buffer> {
  const fileOf = (requirement: Requirement) => join(cache, 'wheels', `${requirement.sha256}.whl`);
  const missing = requirements.filter((one) => !readVerified(fileOf(one), one.sha256));
  for (const round of roundsOfDistinctNames(missing)) download(round, fileOf);
  return new Map(
    requirements.map((one) => {
      const bytes = readVerified(fileOf(one), one.sha256);
      if (!bytes) {
        throw new EvaluatorError(
          'toolchain_unavailable',
          `No wheel of ${packageKey(one)} has the pinned hash.`,
        );
      }
      return [packageKey(one), bytes];
    }),
  );
}

/** pip refuses two versions of a name in one call. */
function roundsOfDistinctNames(requirements: readonly Requirement[]): Requirement[][] {
  const rounds: Requirement[][] = [];
  for (const one of requirements) {
    const free = rounds.find((round) => round.every((other) => other.name !== one.name));
    if (free) free.push(one);
    else rounds.push([one]);
  }
  return rounds;
}

function download(requirements: readonly Requirement[], fileOf: (one: Requirement) => string): void {
  const dir = mkdtempSync(join(tmpdir(), 'wheels-'));
  try {
    const list = requirements.map((one) => `${packageKey(one)} --hash=sha256:${one.sha256}\n`).join('');
    writeFileSync(join(dir, 'requirements.txt'), list);
    runTool(
      'python3',
      [
        '-m',
        'pip',
        'download',
        '--quiet',
        '--disable-pip-version-check',
        ...PURE,
        NEWEST_PYTHON_ASKED,
      ].concat(['--require-hashes', '--dest=wheels', '--requirement=requirements.txt']),
      { cwd: dir, remedy: REMEDY, timeoutMs: 300_000 },
    );
    const bySha256 = new Map(requirements.map((one) => [one.sha256, one]));
    for (const name of readdirSync(join(dir, 'wheels'))) {
      const bytes = readFileSync(join(dir, 'wheels', name));
      const requirement = bySha256.get(sha256Hex(bytes));
      if (requirement) writeAtomic(fileOf(requirement), bytes);
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
