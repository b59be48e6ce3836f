import { createHash, randomBytes } from 'node:crypto';
import { type CgroupReader, locateCgroup } from '../engine/cgroup.ts';
import type { ContainerSpec, ContainerState } from '../engine/port.ts';
import { packTar, type TarEntry } from '../engine/tar.ts';
import { verifyCreated } from '../engine/verify-created.ts';
import { EvaluatorError } from '../errors.ts';
import { BASE_CAPABILITIES } from './capabilities.ts';
import { labelsOf, type Role } from './labels.ts';
import type { TrialContext, TrialTask, Upload } from './session.ts';
import { ensureWorkdir } from './workdir.ts';

export const TOOLS = '/opt/evaluator';
export const SHELL = [`${TOOLS}/busybox`, 'sh'] as const;

/** One trial container, from its creation to its removal. */
export interface Sandbox {
  containerId: string;
  /** Where tests will be uploaded; known to nobody inside before that (see entry.sh). */
  secretPath: string;
  commitment: string;
  cgroup: CgroupReader;
  /**
   * As it was when the holder first ran: the same container, not restarted, must end. Null once we may have
   * started it again ourselves.
   */
  started: ContainerState | null;
  network: string;
}

/** What a container of this task is created with; `role` says what for. */
function containerSpec(
  context: TrialContext,
  task: TrialTask,
  role: Role,
  rep: string,
  command: readonly string[],
): ContainerSpec {
  const home = task.image.env.find((entry) => entry.startsWith('HOME=')) ?? 'HOME=/root';
  return {
    name: `cvm-eval-${context.session.id}-${randomBytes(6).toString('hex')}`,
    image: task.image.id,
    command,
    // HOME is fixed here: the engine would read it from the container's own /etc/passwd (spec/03, 7).
    env: [home, ...Object.entries(task.env).map(([name, value]) => `${name}=${value}`)],
    // The holder starts in /: an agent may have replaced WORKDIR before the second life.
    workingDir: '/',
    labels: labelsOf(context.session, context.runId, role, rep),
    capAdd: [...BASE_CAPABILITIES, ...task.capAdd],
    nanoCpus: task.limits.nano_cpus,
    cpuShares: context.cpuShares,
    memoryBytes: task.limits.memory_bytes,
    pids: task.pids,
    fileSizeBytes: task.limits.storage_bytes,
    network: bridgeOf(context, task),
    dns: typeof task.network === 'string' ? 'engine' : 'none',
    toolsVolume: { name: context.toolsVolume, target: TOOLS, access: 'ro' },
  };
}

/** A plan's `inference` alone gives a container nothing: the one that the agent runs in is given its rep's bridge. */
function bridgeOf(context: TrialContext, { network }: TrialTask): string {
  if (typeof network === 'object') return network.bridge;
  return network === 'open' ? networkName(context) : 'none';
}

/** The run's own bridge: of tasks whose network is open, and the way out of every model proxy. */
export function networkName(context: TrialContext): string {
  return `cvm-eval-${context.session.id}`;
}

/** Our directories only: an entry for a directory of the image would reset its mode (spec/03, 3). */
export function firstLifeTar(task: TrialTask, agentFiles: readonly Upload[]): Buffer {
  const parents = new Set(['task', 'logs', 'logs/agent']);
  const files = [...task.files, ...agentFiles];
  for (const { path } of files) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1))
      parents.add(path.slice(0, at));
  }
  return packTar([
    { path: './', directory: true },
    ...[...parents].sort().map((path): TarEntry => ({ path, directory: true })),
    { path: 'task/instruction.md', bytes: task.instruction, mode: 0o644 },
    ...files
      .filter(({ path }) => !path.endsWith('/'))
      .map(({ path, bytes, executable }): TarEntry => ({ path, bytes, mode: executable ? 0o755 : 0o644 })),
  ]);
}

/** Creates a stopped container and proves that it is what was asked for; one that is not is removed again. */
export async function createSandbox(
  context: TrialContext,
  task: TrialTask,
  rep: string,
  role: Role,
): Promise<Omit<Sandbox, 'cgroup' | 'started'>> {
  const secretPath = `/.evaluator-${randomBytes(16).toString('hex')}`;
  const commitment = createHash('sha256').update(secretPath).digest('hex');
  const mode = task.verifier.mode === 'live' ? 'serve' : 'hold';
  const command = [...SHELL, `${TOOLS}/entry.sh`, mode, commitment];
  const spec = containerSpec(context, task, role, rep, command);
  context.signal.throwIfAborted();
  const containerId = await context.engine.create(spec);
  try {
    // Another daemon setting or a rewriting proxy must not weaken what was asked for.
    verifyCreated(spec, await context.engine.inspectRaw(containerId));
    await ensureWorkdir(context.engine, containerId, task.image.workdir);
  } catch (error) {
    await context.engine.remove(containerId).catch(() => undefined);
    throw error;
  }
  return { containerId, secretPath, commitment, network: spec.network };
}

/** Starts the holder: the container must be running, with its counters readable, before an agent starts. */
export async function startHolder(
  context: TrialContext,
  sandbox: Omit<Sandbox, 'cgroup' | 'started'>,
  task: TrialTask,
): Promise<Sandbox> {
  await context.engine.start(sandbox.containerId);
  const started = await context.engine.inspect(sandbox.containerId);
  if (started.imageId !== task.image.id) {
    throw new EvaluatorError(
      'image_changed',
      `task ${task.taskId}: container has image ${started.imageId}, asked for ${task.image.id}`,
    );
  }
  if (!started.running || started.pid <= 0) {
    throw new EvaluatorError(
      'holder_not_running',
      `task ${task.taskId}: the container is ${started.status} right after its start`,
    );
  }
  const cgroup = locateCgroup(context.info, sandbox.containerId, started.pid);
  cgroup.read();
  return { ...sandbox, cgroup, started };
}
