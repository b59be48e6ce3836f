import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testScript } from '../tasks/describe.ts';
import { findTasks, readTask } from '../tasks/source.ts';
import { buildTaskToolchain, DEBIAN_LOCK, type Toolchain } from '../toolchain/build.ts';
import { writeAtomic } from '../toolchain/cache.ts';
import { DebianSuite } from '../toolchain/debian.ts';
import { packageLines, toolchainLine } from '../toolchain/describe.ts';
import { changedPackages } from '../toolchain/lock.ts';
import { type LockPolicy, refreshLock } from '../toolchain/packages.ts';
import { parseOptions, printHelp, spreadOption } from './arguments.ts';
import { verifyWritable } from './paths.ts';

const USAGE = 'evaluator toolchain [--for DIR...] [--out FILE] [--locked] [--json] | --refresh';
const HELP = `usage: ${USAGE}

Builds the verifier's tools as a bake does, and prints their digest, size and every package in them.

  --for DIR...  with what the tasks in these folders ask for; without it, what every volume has
  --out FILE    where the tar goes; without it, nowhere
  --locked      refuse other versions than those of debian.lock
  --refresh     build nothing; rewrite debian.lock with the versions that the Debian archive serves now
  --json        one JSON object on stdout

exit codes: 0 done, 2 usage or refused input, 5 infrastructure
`;

/**
 * `evaluator toolchain`: what a bake would put into its cache as the verifier's tools.
 * @returns the exit code.
 * @throws usage, task_unknown, toolchain_*.
 */
export async function toolchain(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    spreadOption(argv, '--for'),
    {
      for: { type: 'string', multiple: true, default: [] },
      out: { type: 'string' },
      locked: { type: 'boolean', default: false },
      refresh: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  if (values.refresh) return refresh();
  if (values.out !== undefined) verifyWritable('toolchain', 'out', values.out, 'file');
  const scripts = await testScripts(values.for);
  const built = await buildTo(values.out ?? null, scripts, values.locked ? 'locked' : 'served');
  const lines = [toolchainLine(built), ...packageLines(built)];
  const { sizeBytes, ...rest } = built;
  process.stdout.write(
    values.json ? `${JSON.stringify({ ...rest, size_bytes: sizeBytes })}\n` : `${lines.join('\n')}\n`,
  );
  return 0;
}

function refresh(): number {
  const before = readFileSync(DEBIAN_LOCK, 'utf8');
  const after = refreshLock(before, () => new DebianSuite());
  writeAtomic(DEBIAN_LOCK, Buffer.from(after));
  const changed = changedPackages(before, after);
  for (const { name, from, to } of changed) process.stdout.write(`${name} ${from} -> ${to}\n`);
  process.stdout.write(`${DEBIAN_LOCK}: ${changed.length} packages changed\n`);
  return 0;
}

/** As a bake reads them: empty where a task has none. */
async function testScripts(folders: readonly string[]): Promise<string[]> {
  if (folders.length === 0) return [];
  const scripts: string[] = [];
  for (const [taskId, directory] of await findTasks(folders))
    scripts.push(testScript(await readTask(taskId, directory)));
  return scripts;
}

async function buildTo(
  out: string | null,
  scripts: readonly string[],
  policy: LockPolicy,
): Promise<Toolchain> {
  if (out !== null) return buildTaskToolchain({ outFile: out, scripts, policy });
  const work = await mkdtemp(join(tmpdir(), 'toolchain-'));
  try {
    return await buildTaskToolchain({ outFile: join(work, 'toolchain.tar'), scripts, policy });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
