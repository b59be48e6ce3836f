import { randomBytes } from 'node:crypto';
import { readGoldenKey } from '../../challenge/golden-key.ts';
import { bakeTasks } from '../tasks/bake.ts';
import { DEFAULT_ENGINE_SOCKET } from '../tasks/image-store.ts';
import { buildToolchain } from '../toolchain/build.ts';
import { nameList, parseOptions, printHelp, required, spreadOption } from './arguments.ts';

const USAGE =
  'evaluator bake --from DIR... --out DIR [--only a,b] [--live NAME,...] [--seal KEYFILE] [--engine SOCKET] [--json]';
const HELP = `usage: ${USAGE}

Makes a task cache: public files, tests, the verifier's tools and a manifest that pins every byte and image.

  --from DIR       a folder of plain Terminal-Bench 2.x tasks; may be repeated
  --out DIR        where the cache goes: absent or empty, written whole or not at all
  --only a,b       these tasks only
  --live NAME,...  tasks whose services must go on while their tests run
  --seal KEYFILE   tests as ciphertext only, under the golden key of \`evaluator keygen\`
  --engine SOCKET  the container engine (default ${DEFAULT_ENGINE_SOCKET})
  --json           one JSON object on stdout
`;

/**
 * `evaluator bake`: plain tasks into a cache; `--seal` hides their tests under the golden key.
 * @returns the exit code.
 * @throws usage, golden_key_invalid, bake_output_exists, task_*, image_*, engine_*, toolchain_*.
 */
export async function bake(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    spreadOption(argv, '--from'),
    {
      from: { type: 'string', multiple: true },
      out: { type: 'string' },
      only: { type: 'string', multiple: true },
      live: { type: 'string', multiple: true },
      seal: { type: 'string' },
      engine: { type: 'string', default: DEFAULT_ENGINE_SOCKET },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const out = required(values.out, 'out', USAGE);
  const { manifest, cacheDigest } = await bakeTasks({
    from: required(values.from, 'from', USAGE),
    out,
    only: nameList(values.only),
    live: nameList(values.live),
    seal: values.seal === undefined ? null : { goldenKey: readGoldenKey(values.seal), random: randomBytes },
    engineSocket: values.engine,
    toolchain: buildToolchain,
    onProgress: (message) => process.stderr.write(`${message}\n`),
  });
  if (values.json) {
    process.stdout.write(
      `${JSON.stringify({ out, cache_digest: cacheDigest, cache_id: manifest.cache_id, tasks: manifest.tasks })}\n`,
    );
    return 0;
  }
  for (const task of manifest.tasks)
    process.stdout.write(`${task.task_id}  ${task.image_source} on ${task.base}  ${task.task_digest}\n`);
  process.stdout.write(`cache ${cacheDigest}\n`);
  return 0;
}
