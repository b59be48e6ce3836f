import { EvaluatorError } from '../../guest/errors.ts';
import { AGENT_RUNTIME, makeAgentRuntime } from '../images/agent-runtime.ts';
import { GUEST_BASE, LOCKED_NODE, makeGuestBase } from '../images/base.ts';
import { type BaseResult, makeBases, STAND_IN_TAGS, tagsOfTasks } from '../tasks/base.ts';
import { DEFAULT_ENGINE_SOCKET } from '../tasks/image-store.ts';
import { SUITES, type Suite } from '../tasks/stand-ins.ts';
import { parseOptions, printHelp, required } from './arguments.ts';

const USAGE =
  'evaluator base --for tasks|guest|agents [--from DIR [--suite NAME]] [--engine SOCKET] [--json]';
const HELP = `usage: ${USAGE}

Makes base images from Debian packages (mmdebstrap, as root). What is there already is left alone.

  --for tasks      stand-ins for what tasks are built on, under the names that tasks use;
                   Python 3.13 on bookworm is built from source, which takes minutes
  --from DIR       of those only what the tasks of this folder are built on
  --suite NAME     bookworm or trixie stands for all of those, whatever stand-in has the name now: for a task that
                   needs another version of a package than the usual stand-in has
  --for guest      what \`evaluator build\` builds on, with the locked Node: ${GUEST_BASE}
  --for agents     what brokered agents run in, Python 3 and the locked Node: ${AGENT_RUNTIME}
  --engine SOCKET  the container engine (default ${DEFAULT_ENGINE_SOCKET})
  --json           one JSON object on stdout

exit codes: 0 done, 2 usage or refused input, 5 infrastructure
`;

async function makeFor(
  user: string,
  from: string | undefined,
  suite: Suite | undefined,
  engineSocket: string,
  onProgress: (message: string) => void,
): Promise<BaseResult[]> {
  if (user !== 'tasks' && from !== undefined)
    throw new EvaluatorError('usage', `--from: only with --for tasks\nusage: ${USAGE}`);
  if (suite !== undefined && from === undefined)
    throw new EvaluatorError('usage', `--suite: only with --from\nusage: ${USAGE}`);
  if (user === 'tasks') {
    const tags = from === undefined ? STAND_IN_TAGS : await tagsOfTasks(from);
    return makeBases({ engineSocket, tags, ...(suite === undefined ? {} : { suite }), onProgress });
  }
  if (user === 'guest') return [await makeGuestBase(LOCKED_NODE, onProgress)];
  if (user === 'agents') return [await makeAgentRuntime(LOCKED_NODE, engineSocket, onProgress)];
  throw new EvaluatorError('usage', `--for: only "tasks", "guest" and "agents" are known\nusage: ${USAGE}`);
}

/** @throws usage */
function suiteOf(name: string | undefined): Suite | undefined {
  const suite = SUITES.find((one) => one === name);
  if (suite === undefined && name !== undefined)
    throw new EvaluatorError('usage', `--suite: only ${SUITES.join(' and ')} are known\nusage: ${USAGE}`);
  return suite;
}

/**
 * `evaluator base`: base images, where no registry answers.
 * @returns the exit code.
 * @throws usage, task_unknown, task_file_name, engine_absent, base_unavailable, build_*, command_failed.
 */
export async function base(argv: readonly string[]): Promise<number> {
  const values = parseOptions(
    argv,
    {
      for: { type: 'string' },
      from: { type: 'string' },
      suite: { type: 'string' },
      engine: { type: 'string', default: DEFAULT_ENGINE_SOCKET },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
    USAGE,
  );
  if (values.help) return printHelp(HELP);
  const onProgress = (message: string) => void process.stderr.write(`${message}\n`);
  const user = required(values.for, 'for', USAGE);
  const suite = suiteOf(values.suite);
  const bases = await makeFor(user, values.from, suite, values.engine, onProgress);
  if (values.json) process.stdout.write(`${JSON.stringify({ bases })}\n`);
  else
    for (const { action, tag, image } of bases)
      process.stdout.write(`${action} ${tag} ${image.slice(7, 19)}\n`);
  return 0;
}
