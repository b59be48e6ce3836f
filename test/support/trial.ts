import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectDocker } from '../../guest/engine/docker.ts';
import type { Engine } from '../../guest/engine/port.ts';
import { runTaskOf } from '../../guest/stages/tracks.ts';
import type { TaskFile } from '../../guest/tasks/types.ts';
import type { FinishedRep, TrackRun, TrackTask } from '../../guest/tracks/track.ts';
import { Capacity } from '../../guest/trial/capacity.ts';
import { systemClock } from '../../guest/trial/clock.ts';
import { newSession, type Session } from '../../guest/trial/labels.ts';
import type { BrokeredAgent, TrialAgent, TrialContext, TrialTask } from '../../guest/trial/session.ts';
import { sweepSession } from '../../guest/trial/sweep.ts';
import { createToolsVolume } from '../../guest/trial/tools-volume.ts';
import type { RepRecord } from '../../guest/wire/score-record.ts';
import { AGENT_RUNTIME, makeAgentRuntime } from '../../scripts/images/agent-runtime.ts';
import { LOCKED_NODE } from '../../scripts/images/base.ts';
import { ENGINE_SOCKET } from '../docker/fixtures.ts';
import { buildShellToolchain } from './toolchains.ts';

const MIB = 1024 * 1024;
/** Debian with python3 and bash; `evaluator base --for tasks` makes it. */
const BASE_IMAGE = 'python:3.11-slim-bookworm';
/** The base with a WORKDIR that is there, as a task's image has one. */
const TRIAL_IMAGE = 'cvm-evaluator-test/trial:1';

function ensureTrialImage(): void {
  try {
    execFileSync('docker', ['build', '--quiet', '--tag', TRIAL_IMAGE, '-'], {
      input: `FROM ${BASE_IMAGE}\nWORKDIR /app\n`,
      env: { ...process.env, DOCKER_BUILDKIT: '0' },
      stdio: ['pipe', 'ignore', 'pipe'],
    });
  } catch (cause) {
    throw new Error(`no image ${BASE_IMAGE}: run \`scripts/evaluator base --for tasks\``, { cause });
  }
}

/** A test that passes when the agent left /app/answer with the word `right`. */
export const ANSWER_TEST = `#!/bin/bash
mkdir -p /logs/verifier
if [ "$(cat /app/answer 2>/dev/null)" = right ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;

export interface ScriptOptions {
  /** Run by the image's bash, cwd = WORKDIR. */
  script: string;
  test?: string;
  tests?: readonly TaskFile[];
  /** Default: terminal-bench, policy mean. */
  track?: string;
  /** Below environment/artifact/. */
  audited?: readonly TaskFile[];
  /** Called whenever hidden files are read. */
  onTestsRead?: () => Promise<void>;
  evidence?: TrackTask['evidence'];
  mode?: TrialTask['verifier']['mode'];
  /** Of mode `artifact`; default: WORKDIR. */
  artifactPaths?: readonly string[];
  reps?: number;
  limits?: Partial<TrialTask['limits']>;
  pids?: number;
  command?: readonly string[];
  /** The agent.py of a brokered agent, beside the script; absent: the script is a container agent. */
  brokered?: string;
  /** NAME=value, as a plan's variables reach the agent. */
  agentEnv?: readonly string[];
  verifierTimeoutMs?: number;
  network?: TrialTask['network'];
  /** Free disk below which the disk is watched; a huge one makes every look find it low. */
  diskReserveBytes?: number;
  taskId?: string;
  /** In place of the harness's, for this run alone. */
  engine?: Engine;
  counters?: TrialContext['counters'];
}

/** The trial on a real engine, without plan, challenge or attestation around it. */
export interface TrialHarness {
  context: TrialContext;
  session: Session;
  finished: FinishedRep[];
  /** The task that `run` would make of these options. */
  taskOf(options: ScriptOptions): TrackTask;
  /** The reps of a task whose agent is a script. */
  run(options: ScriptOptions): Promise<RepRecord[]>;
  close(): Promise<void>;
}

function scriptTask(image: TrialTask['image'], options: ScriptOptions): TrackTask {
  const test: TaskFile = {
    path: 'tests/test.sh',
    bytes: Buffer.from(options.test ?? ANSWER_TEST),
    executable: true,
  };
  return {
    trial: {
      taskId: options.taskId ?? 'scripted',
      image,
      instruction: Buffer.from('Write the word right to /app/answer.\n'),
      limits: {
        nano_cpus: 1e9,
        memory_bytes: 256 * MIB,
        storage_bytes: 256 * MIB,
        cpu_budget_ms: 60_000,
        wall_budget_ms: 60_000,
        ...options.limits,
      },
      pids: options.pids ?? 128,
      capAdd: [],
      network: options.network ?? 'none',
      env: {},
      files: [],
      verifier: {
        mode: options.mode ?? 'restart',
        artifactPaths: options.artifactPaths ?? (options.mode === 'artifact' ? ['/app'] : []),
        timeoutMs: options.verifierTimeoutMs ?? 60_000,
        env: {},
      },
    },
    evidence: options.evidence ?? { kind: 'none', passed: null },
    audited: async () => [...(options.audited ?? [])],
    tests: async () => {
      await options.onTestsRead?.();
      return [test, ...(options.tests ?? [])];
    },
    disclosure: 'full',
  };
}

/** The agent runtime's image; made when it is not there. */
export async function agentRuntime(engine: Engine): Promise<BrokeredAgent['runtime']> {
  await makeAgentRuntime(LOCKED_NODE, ENGINE_SOCKET, () => undefined);
  const image = await engine.image(AGENT_RUNTIME);
  if (!image) throw new Error(`no image ${AGENT_RUNTIME}`);
  return { imageId: image.id, env: image.env };
}

const file = (path: string, text: string) => ({ path, bytes: Buffer.from(text), executable: true });

async function agentOf(engine: Engine, options: ScriptOptions): Promise<TrialAgent> {
  const script = file('agent/agent.sh', options.script);
  if (options.brokered === undefined)
    return {
      kind: 'container',
      command: options.command ?? ['bash', '/agent/agent.sh'],
      env: options.agentEnv ?? [],
      files: [script],
    };
  return {
    kind: 'brokered',
    command: options.command ?? ['python3', '-m', 'evaluator_harbor', '/agent/agent.py'],
    env: options.agentEnv ?? [],
    files: [script, file('agent/agent.py', options.brokered)],
    runtime: await agentRuntime(engine),
  };
}

/** A brokered agent that runs /agent/agent.sh in the task's container, and ends as that ended. */
export const RELAY = `import sys

class Agent:
    async def run(self, instruction, environment, context):
        await environment.upload_file("/agent/agent.sh", "/agent/agent.sh")
        result = await environment.exec("exec bash /agent/agent.sh")
        print(result.stdout, end="")
        print(result.stderr, end="", file=sys.stderr)
        sys.exit(result.return_code)
`;

/** Both kinds of agent, as options of a run whose script does the same in the task's container. */
export const KINDS: readonly (readonly [kind: string, options: Pick<ScriptOptions, 'brokered'>])[] = [
  ['container', {}],
  ['brokered', { brokered: RELAY }],
];

/**
 * Starts a session on `engine` (by default the machine's). `diskReserveBytes` 0 leaves the free-space watch
 * asleep; a huge one makes every look find the disk low.
 */
export async function startTrial(
  overrides: {
    engine?: Engine;
    image?: string;
    diskReserveBytes?: number;
    maxStartRetries?: number;
    toolchain?: (outFile: string) => Promise<unknown>;
  } = {},
): Promise<TrialHarness> {
  const real = connectDocker(ENGINE_SOCKET);
  const engine = overrides.engine ?? real;
  const folder = mkdtempSync(join(tmpdir(), 'trial-'));
  const toolchain = join(folder, 'toolchain.tar');
  await (overrides.toolchain ?? buildShellToolchain)(toolchain);
  if (overrides.image === undefined) ensureTrialImage();
  const image = await real.image(overrides.image ?? TRIAL_IMAGE);
  if (!image) throw new Error(`no image ${overrides.image}`);
  const session = newSession(null);
  const base = { engine: real, session, runId: 'trial-test' };
  const toolsVolume = await createToolsVolume(base, toolchain, image.id, []);
  const info = await real.info();
  const context: TrialContext = {
    ...base,
    engine,
    toolsVolume,
    info,
    clock: systemClock,
    cpuShares: 512,
    maxStartRetries: overrides.maxStartRetries ?? 2,
    diskPath: '/',
    diskReserveBytes: overrides.diskReserveBytes ?? 0,
    uploads: (upload) => upload(),
    counters: { faults: 0 },
    inference: null,
    signal: new AbortController().signal,
  };
  const finished: FinishedRep[] = [];
  const shared: Omit<TrackRun, 'r' | 'context' | 'onFault' | 'track' | 'policy'> = {
    capacity: new Capacity({ cpus: 64, memoryBytes: 1e12, diskBytes: 1e15, slots: 64 }),
    runStartMs: systemClock.monotonicMs(),
    onRep: async (done) => {
      finished.push(done);
    },
  };
  const taskOf = (options: ScriptOptions) =>
    scriptTask({ id: image.id, workdir: '/app', env: image.env, source: 'built' }, options);
  return {
    context,
    session,
    finished,
    run: async (options) => {
      const stop = new AbortController();
      const track = options.track ?? 'terminal-bench';
      return runTaskOf(track)(
        {
          ...shared,
          track,
          policy: track === 'terminal-bench' ? 'mean' : null,
          r: options.reps ?? 1,
          context: {
            ...context,
            engine: options.engine ?? context.engine,
            counters: options.counters ?? context.counters,
            diskReserveBytes: options.diskReserveBytes ?? context.diskReserveBytes,
            signal: stop.signal,
          },
          onFault: (error) => stop.abort(error),
        },
        taskOf(options),
        await agentOf(real, options),
        0,
      );
    },
    taskOf,
    close: async () => {
      await sweepSession(real, session, systemClock);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
