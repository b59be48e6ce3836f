import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { isReservedEnv } from '../../guest/agent/manifest.ts';
import { trackKind } from '../../guest/consensus/track-kind.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import type { Policy } from '../../guest/wire/plan.ts';
import { envName } from '../../guest/wire/scalars.ts';
import { isBuiltinAgent } from '../agent/builtin.ts';
import { nameList, parseOptions, required } from '../cli/arguments.ts';
import { existingPath, outputFolder, timeName } from '../cli/paths.ts';

export const USAGE = `evaluator run --cache DIR --agent DIR|ZIP|oracle|nop|auditor [--track NAME] [--tasks a,b] [--reps N] [--concurrency N]
              [--policy vote|mean] [--solutions DIR] [--agent-env NAME,...] [--engine SOCKET] [--image [REF]] [--offers FILE]
              [--golden-key FILE] [--ranked] [--review FILE] [--require-review] [--out DIR] [--json]`;

export const HELP = `usage: ${USAGE}

Judges an agent on tasks: a simulated TDX machine, a challenge and the guest run as separate processes.

  --cache DIR        a baked cache, or a folder of plain tasks, which is baked on the fly
  --agent WHAT       a folder or ZIP with agent.py or agent.yaml, or one of ours that check tasks: oracle, nop, auditor
  --track NAME       skills, mcp_servers, packages, repositories or terminal-bench (default)
  --tasks a,b        these tasks only (default: all)
  --reps N           repetitions per task, 1 to 64 (default: 3 on terminal-bench; elsewhere the mechanism's, and no other)
  --concurrency N    reps at once at the most, 1 to 64 (default: the machine's CPUs)
  --policy NAME      terminal-bench: vote, a strict majority of reps passes (default), or mean, the mean reward
  --solutions DIR    plain tasks for the oracle, beside a baked cache
  --agent-env NAMES  variables of this environment that the agent may see, if it asks for them
  --engine SOCKET    the container engine (default /var/run/docker.sock)
  --image [REF]      the guest runs as its image, in a container with what its compose says: REF, which the engine
                     has, or the image of the checked-out commit, built now with the sealed cache in it
  --offers FILE      YAML with the mechanism's sections \`inference\` and \`packages\`: what agents are offered. With
                     \`inference\`, tasks reach that model alone, with INFERENCE_API_KEY of this environment
  --golden-key FILE  what a sealed cache was baked under; a folder of plain tasks is sealed under a new one
  --ranked           no network, no logs, a sealed cache; not for our own agents
  --review FILE      the accepted review that \`evaluator review\` left; it is verified anew, with the files beside it
  --require-review   refuse to run without one
  --out DIR          where plan, result, receipt and all that \`verify\` needs is left
                     (default out/<time>)
  --json             one JSON object on stdout

exit codes: 0 accepted, 1 rejected, 2 refused input, 3 verification failed, 5 aborted (no RESULT),
            130, 143 ended by SIGINT, SIGTERM
`;

export interface RunOptions {
  cache: string;
  agent: string;
  track: string;
  tasks: readonly string[];
  /** null: as many as the track has. */
  reps: number | null;
  concurrency: number;
  /** null on every track but terminal-bench. */
  policy: Policy | null;
  solutions: string | null;
  agentEnv: readonly string[];
  engineSocket: string;
  /** The image that the guest runs as: one to be built, or a name on the engine; null: a process of this machine. */
  image: GuestImageChoice | null;
  /** The file with the mechanism's sections on models and packages; null: neither is offered. */
  offers: string | null;
  goldenKey: string | null;
  weight: 'ranked' | 'calibration';
  /** The accepted review that admits the run; null: none is asked for. */
  review: string | null;
  out: string;
  format: 'json' | 'table';
}

export type GuestImageChoice = { kind: 'built' } | { kind: 'named'; ref: string };

function refuse(message: string): never {
  throw new EvaluatorError('usage', `run: ${message}`);
}

function count(text: string, option: string): number {
  const value = /^[0-9]{1,3}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > 64)
    refuse(`--${option} ${JSON.stringify(text)}: must be a whole number from 1 to 64`);
  return value;
}

function policy(track: string, text: string | undefined): Policy | null {
  if (trackKind(track) !== 'terminal-bench') {
    if (text !== undefined) refuse(`--policy ${JSON.stringify(text)}: track ${track} has none`);
    return null;
  }
  if (text === undefined) return 'vote';
  if (text === 'vote' || text === 'mean') return text;
  return refuse(`--policy ${JSON.stringify(text)}: must be vote or mean`);
}

/** What `--image` means without a name. */
const BUILD = 'build';

/** An option that may stand alone: there it gets this value. */
function withImplied(argv: readonly string[], option: string, value: string): string[] {
  return argv.flatMap((argument, index) => {
    const next = argv[index + 1];
    return argument === option && (next === undefined || next.startsWith('-')) ? [option, value] : [argument];
  });
}

function guestImage(ref: string | undefined, cache: string): GuestImageChoice | null {
  if (ref === undefined) return null;
  if (ref === BUILD) return { kind: 'built' };
  if (!existsSync(join(cache, 'manifest.json')))
    refuse(`--image ${ref}: --cache ${cache} must be the baked cache that is in it`);
  return { kind: 'named', ref };
}

function variables(names: string[]): string[] {
  const wrong = names.find((name) => !envName.safeParse(name).success);
  if (wrong !== undefined)
    refuse(
      `--agent-env ${JSON.stringify(wrong)}: must be a variable's name alone; its value is taken from here`,
    );
  const reserved = names.find(isReservedEnv);
  if (reserved !== undefined)
    refuse(`--agent-env ${reserved}: reserved and never given to an agent; leave it out`);
  return names;
}

const existing = (path: string, option: string) => existingPath('run', option, path);

/** Reads the verb's options; null when help was asked for. @throws usage. */
export function readOptions(argv: readonly string[], nowMs: number): RunOptions | null {
  const values = parseOptions(
    withImplied(argv, '--image', BUILD),
    {
      cache: { type: 'string' },
      agent: { type: 'string' },
      tasks: { type: 'string', multiple: true },
      track: { type: 'string', default: 'terminal-bench' },
      reps: { type: 'string' },
      concurrency: { type: 'string', default: String(Math.min(availableParallelism(), 64)) },
      policy: { type: 'string' },
      solutions: { type: 'string' },
      'agent-env': { type: 'string', multiple: true },
      engine: { type: 'string', default: '/var/run/docker.sock' },
      image: { type: 'string' },
      offers: { type: 'string' },
      'golden-key': { type: 'string' },
      ranked: { type: 'boolean', default: false },
      review: { type: 'string' },
      'require-review': { type: 'boolean', default: false },
      out: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
    USAGE,
  );
  if (values.help) return null;
  const agent = required(values.agent, 'agent', USAGE);
  if (values.ranked && isBuiltinAgent(agent))
    refuse(`--agent ${agent} only checks tasks: it cannot be ranked`);
  if (values['require-review'] && values.review === undefined)
    refuse('--require-review: name the accepted review with --review FILE (see `evaluator review`)');
  if (values.offers !== undefined && values.image !== undefined)
    refuse('--offers: an image has a mechanism of its own, in which they stand');
  return {
    cache: existing(required(values.cache, 'cache', USAGE), 'cache'),
    agent: isBuiltinAgent(agent) ? agent : existing(agent, 'agent'),
    track: values.track,
    tasks: nameList(values.tasks),
    reps: values.reps === undefined ? null : count(values.reps, 'reps'),
    concurrency: count(values.concurrency, 'concurrency'),
    policy: policy(values.track, values.policy),
    solutions: values.solutions === undefined ? null : existing(values.solutions, 'solutions'),
    agentEnv: variables(nameList(values['agent-env'])),
    engineSocket: values.engine,
    image: guestImage(values.image, required(values.cache, 'cache', USAGE)),
    offers: values.offers === undefined ? null : existing(values.offers, 'offers'),
    goldenKey: values['golden-key'] === undefined ? null : existing(values['golden-key'], 'golden-key'),
    weight: values.ranked ? 'ranked' : 'calibration',
    review: values.review === undefined ? null : existing(values.review, 'review'),
    out: outputFolder('run', values.out ?? `out/${timeName(nowMs)}`),
    format: values.json ? 'json' : 'table',
  };
}
