import { randomBytes } from 'node:crypto';
import { readGoldenKey } from '../../challenge/golden-key.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { type BakeCheck, bakeTasks } from '../tasks/bake.ts';
import { checkJson, checkLines } from '../tasks/check-report.ts';
import { DEFAULT_ENGINE_SOCKET } from '../tasks/image-store.ts';
import { buildTaskToolchain } from '../toolchain/build.ts';
import { toolchainLine } from '../toolchain/describe.ts';
import { nameList, parseOptions, printHelp, required, spreadOption } from './arguments.ts';
import { onInterruption } from './interruption.ts';
import { verifyWritable } from './paths.ts';

const USAGE =
  'evaluator bake --from DIR... --out DIR [--only a,b] [--track NAME] [--live NAME,...] [--seal KEYFILE] [--locked] [--check [--reps N] [--leave-out-failing] [--logs DIR]] [--engine SOCKET] [--json]';
const HELP = `usage: ${USAGE}

Makes a task cache: public files, tests, the verifier's tools and a manifest that pins every byte and image.

  --from DIR       a folder of plain Terminal-Bench 2.x tasks; may be repeated
  --out DIR        where the cache goes: absent or empty, written whole or not at all
  --only a,b       these tasks only
  --track NAME     tasks of this track only (default: of every track)
  --live NAME,...  tasks whose services must go on while their tests run
  --seal KEYFILE   tests as ciphertext only, under the golden key of \`evaluator keygen\`
  --check          run each task's oracle, which must pass, and a do-nothing agent, which must fail, and write
                   into the manifest the strictest verifier mode in which both do (artifact, else restart, else
                   live where the task is marked), and how many tests must pass; a task that is not stable refuses
                   the bake, by name
  --reps N         of each of the two, 1 to 64 (default 2)
  --leave-out-failing  bake without the tasks that cannot be built or are not stable, and report them
  --logs DIR       keep what the checked agents and tests printed
  --locked         refuse other Debian packages in the verifier's tools than debian.lock names
  --engine SOCKET  the container engine (default ${DEFAULT_ENGINE_SOCKET})
  --json           one JSON object on stdout

exit codes: 0 baked, 2 refused (a check that failed among it; its report is on stdout all the same), 5 infrastructure,
            130, 143 ended by SIGINT, SIGTERM: nothing of it is left
`;

interface CheckValues {
  check: boolean;
  reps?: string | undefined;
  'leave-out-failing': boolean;
  logs?: string | undefined;
}

/** @throws usage: an option of --check without it, or reps that are no number. */
function checkOf(values: CheckValues, onChecked: BakeCheck['onChecked']): BakeCheck | null {
  const { check, reps = '2', 'leave-out-failing': leaveOut, logs = null } = values;
  if (!check) {
    if (values.reps === undefined && !leaveOut && logs === null) return null;
    throw new EvaluatorError('usage', 'bake: --reps, --leave-out-failing and --logs belong to --check');
  }
  const count = /^[0-9]{1,2}$/.test(reps) ? Number(reps) : 0;
  if (count < 1 || count > 64)
    throw new EvaluatorError(
      'usage',
      `bake: --reps ${JSON.stringify(reps)}: must be a whole number from 1 to 64`,
    );
  if (logs !== null) verifyWritable('bake', 'logs', logs, 'folder');
  return { reps: count, failing: leaveOut ? 'leave_out' : 'refuse', logs, onChecked };
}

const refusalJson = ({ code, message }: EvaluatorError) => ({ code, message });

function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/**
 * `evaluator bake`: plain tasks into a cache; `--seal` hides their tests under the golden key.
 * @returns the exit code.
 * @throws usage, golden_key_invalid, bake_output_exists, task_*, image_*, engine_*, toolchain_*,
 * bake_check_failed.
 */
export async function bake(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    spreadOption(argv, '--from'),
    {
      from: { type: 'string', multiple: true },
      out: { type: 'string' },
      only: { type: 'string', multiple: true },
      track: { type: 'string' },
      live: { type: 'string', multiple: true },
      seal: { type: 'string' },
      locked: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      reps: { type: 'string' },
      'leave-out-failing': { type: 'boolean', default: false },
      logs: { type: 'string' },
      engine: { type: 'string', default: DEFAULT_ENGINE_SOCKET },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const out = required(values.out, 'out', USAGE);
  let report: object = {};
  const interrupted = onInterruption();
  const { manifest, cacheDigest } = await bakeTasks({
    from: required(values.from, 'from', USAGE),
    out,
    only: nameList(values.only),
    track: values.track ?? null,
    live: nameList(values.live),
    seal: values.seal === undefined ? null : { goldenKey: readGoldenKey(values.seal), random: randomBytes },
    engineSocket: values.engine,
    toolchain: async (made) => {
      const policy = values.locked ? 'locked' : 'served';
      const toolchain = await buildTaskToolchain({ ...made, policy });
      process.stderr.write(`${toolchainLine(toolchain)}\n`);
      return toolchain;
    },
    check: checkOf(values, (found) => {
      if (values.json)
        report = { check: found.checks.map(checkJson), not_baked: found.unbuilt.map(refusalJson) };
      else for (const line of checkLines(found.checks, found.unbuilt)) process.stdout.write(`${line}\n`);
    }),
    signal: interrupted.signal,
    onProgress: (message) => process.stderr.write(`${message}\n`),
  }).catch((error) => {
    const exitCode = interrupted.exitCode();
    if (exitCode !== null) {
      process.stderr.write(`evaluator: ${interrupted.signal.reason.message}; no cache was made\n`);
      // An image that is being built ends with the connection.
      process.exit(exitCode);
    }
    if (values.json && 'check' in report) printJson(report);
    throw error;
  });
  if (values.json) {
    printJson({
      out,
      cache_digest: cacheDigest,
      cache_id: manifest.cache_id,
      tasks: manifest.tasks,
      ...report,
    });
    return 0;
  }
  for (const task of manifest.tasks)
    process.stdout.write(`${task.task_id}  ${task.image_source} on ${task.base}  ${task.task_digest}\n`);
  process.stdout.write(`cache ${cacheDigest}\n`);
  return 0;
}
