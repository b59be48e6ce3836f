import { EvaluatorError } from '../../guest/errors.ts';
import { makeBases } from '../tasks/base.ts';
import { DEFAULT_ENGINE_SOCKET } from '../tasks/image-store.ts';
import { parseOptions, printHelp, required } from './arguments.ts';

const USAGE = 'evaluator base --for tasks [--engine SOCKET] [--json]';
const HELP = `usage: ${USAGE}

Makes stand-ins for the base images that tasks are built on, from Debian packages (mmdebstrap, as root),
under the names that tasks use. What the engine already has is left alone.

  --for tasks      which bases
  --engine SOCKET  the container engine (default ${DEFAULT_ENGINE_SOCKET})
  --json           one JSON object on stdout
`;

/**
 * `evaluator base`: stand-in base images, where no registry answers.
 * @returns the exit code.
 * @throws usage, engine_absent, base_unavailable, command_failed.
 */
export async function base(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    argv,
    {
      for: { type: 'string' },
      engine: { type: 'string', default: DEFAULT_ENGINE_SOCKET },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  if (required(values.for, 'for', USAGE) !== 'tasks')
    throw new EvaluatorError('usage', `--for: only "tasks" is known\nusage: ${USAGE}`);
  const bases = await makeBases({
    engineSocket: values.engine,
    onProgress: (message) => process.stderr.write(`${message}\n`),
  });
  if (values.json) process.stdout.write(`${JSON.stringify({ bases })}\n`);
  else
    for (const { action, tag, image } of bases)
      process.stdout.write(`${action} ${tag} ${image.slice(7, 19)}\n`);
  return 0;
}
