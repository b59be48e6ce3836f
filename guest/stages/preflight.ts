import { existsSync } from 'node:fs';
import pLimit from 'p-limit';
import { givenEnv } from '../agent/manifest.ts';
import type { AgentPackage } from '../agent/types.ts';
import { freeDiskBytes } from '../engine/disk.ts';
import type { EngineInfo } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import type { TaskCache } from '../tasks/types.ts';
import { diskNeed, repNeed } from '../tracks/reps.ts';
import { Capacity } from '../trial/capacity.ts';
import type { BrokeredAgent, TrialAgent, TrialContext, Upload } from '../trial/session.ts';
import { sweepOrphans } from '../trial/sweep.ts';
import { type Mechanism, trackRules } from '../wire/mechanism.ts';
import type { EvalPlan } from '../wire/plan.ts';
import { resolveRuntime } from './agent-runtime.ts';
import { fetchAgent, verifyAgentEnv } from './artifact.ts';
import type { Host } from './config.ts';
import { type Dependencies, fetchDependencies, packagesEnv, wheelTarget } from './dependencies.ts';
import { verifyEngineFloor } from './engine-floor.ts';
import { resolveImages } from './images.ts';
import { readInferenceOffer } from './model-access.ts';
import { verifyMounts } from './mounts.ts';
import type { Order, OrderedTask } from './order.ts';
import { openPlannedCache, readMechanism, readPlan, verifyOffered } from './preflight-plan.ts';
import { prepareEngine } from './prepare-engine.ts';
import { readSolution } from './solutions.ts';
import { toTrialTask } from './trial-task.ts';

const MIB = 1024 * 1024;
const UPLOADS_AT_ONCE = 4;

async function capacityOf(
  plan: EvalPlan,
  info: EngineInfo,
  mechanism: Mechanism,
  diskPath: string,
): Promise<Capacity> {
  const { memory_mb, disk_mb } = mechanism.reserve;
  return new Capacity({
    cpus: info.cpus,
    memoryBytes: info.memoryBytes - memory_mb * MIB,
    diskBytes: (await freeDiskBytes(diskPath)) - disk_mb * MIB,
    slots: plan.n_concurrent,
  });
}

/** @throws task_too_large: a task that can never fit is refused by name (spec/03, Scheduling). */
function verifyFits(capacity: Capacity, task: OrderedTask, plan: EvalPlan): void {
  const { agent } = task;
  const lack = capacity.neverFits(repNeed(task, agent)) ?? capacity.neverFits(diskNeed(task, agent, plan.r));
  if (lack === null) return;
  throw new EvaluatorError(
    'task_too_large',
    `task ${task.trial.taskId}: at ${plan.r} reps, a brokered agent's sandboxes counted, it wants ${lack}; ` +
      'use a larger machine, or leave the task out',
  );
}

function agentFiles(agent: AgentPackage): Upload[] {
  return agent.files.map(({ path, bytes }) => ({ path: `agent/${path}`, bytes, executable: true }));
}

function agentEnv(agent: AgentPackage, plan: EvalPlan, host: Host): string[] {
  return givenEnv(agent.manifest, plan.agent.env).flatMap((name) => {
    const value = host.inputs.agentEnv[name];
    return value === undefined ? [] : [`${name}=${value}`];
  });
}

/** The agent as it enters the containers of a task. */
function trialAgent(
  agent: AgentPackage,
  env: readonly string[],
  runtime: BrokeredAgent['runtime'] | null,
  solution: readonly Upload[],
): TrialAgent {
  const parts = { command: agent.manifest.command, env, files: [...agentFiles(agent), ...solution] };
  if (agent.manifest.kind === 'container' || runtime === null) return { kind: 'container', ...parts };
  return { kind: 'brokered', runtime, ...parts };
}

async function orderedTasks(
  host: Host,
  plan: EvalPlan,
  cache: TaskCache,
  agent: AgentPackage,
  mechanism: Mechanism,
  base: Omit<TrialContext, 'toolsVolume'>,
  runtime: BrokeredAgent['runtime'] | null,
  packages: Dependencies,
): Promise<OrderedTask[]> {
  const rules = trackRules(mechanism, plan.track);
  const images = await resolveImages(
    base,
    plan.tasks.map((task) => cache.task(task.task_id)),
  );
  const env = [...agentEnv(agent, plan, host), ...packagesEnv(packages)];
  return Promise.all(
    plan.tasks.map(async (planned) => {
      const cached = cache.task(planned.task_id);
      const image = images.get(planned.task_id);
      if (!image)
        throw new EvaluatorError('image_missing', `task ${planned.task_id}: its image was not resolved`);
      const solution = await readSolution(host.config.solutionsDirectory, planned.task_id);
      return {
        trial: toTrialTask(cached, planned, rules, image),
        evidence: cached.evidence,
        audited: () => cache.audited(planned.task_id),
        tests: () => cache.tests(planned.task_id),
        disclosure: plan.ranked ? 'codes_only' : 'full',
        agent: trialAgent(agent, env, runtime, solution),
      } satisfies OrderedTask;
    }),
  );
}

async function trialContext(
  host: Host,
  plan: EvalPlan,
  info: EngineInfo,
  mechanism: Mechanism,
): Promise<Omit<TrialContext, 'toolsVolume' | 'inference'>> {
  const { engine, clock, journal, session } = host;
  const objects = await sweepOrphans(engine, session);
  if (objects > 0) journal.write({ event: 'swept', objects });
  return {
    engine,
    info,
    clock,
    session,
    runId: plan.eval_run_id,
    cpuShares: mechanism.reserve.trial_cpu_shares,
    maxStartRetries: mechanism.max_start_retries,
    diskReserveBytes: mechanism.reserve.disk_mb * MIB,
    // In the measured image the engine's root is not mounted: the guest's own layer lies on the same disk.
    diskPath: existsSync(info.dockerRootDir) ? info.dockerRootDir : '/',
    uploads: pLimit(UPLOADS_AT_ONCE),
    counters: { faults: 0 },
    signal: host.signal,
  };
}

/**
 * Everything that can refuse a run before it costs anything: plan, window, token, mechanism, cache, engine,
 * images, agent, capacity. A plan that cannot be run is refused here, before any key is asked for.
 * @throws EvaluatorError of fault `input` or `infra`.
 */
export async function preflight(host: Host): Promise<Order> {
  const plan = readPlan(host);
  verifyOffered(plan, host.config);
  const info = await verifyMounts(host);
  const pinned = await readMechanism(plan, host.config.mechanismFile);
  const cache = await openPlannedCache(plan, host.config.cacheDirectory);
  const { mechanism } = pinned;
  const offer = readInferenceOffer(plan, mechanism, host.inputs);
  verifyEngineFloor(info, mechanism.floors);
  const agentPackage = await fetchAgent(plan, host.inputs.runToken);
  verifyAgentEnv(agentPackage, plan);
  const packages = await fetchDependencies(agentPackage, mechanism.packages, wheelTarget(agentPackage), host);
  const started = await trialContext(host, plan, info, mechanism);
  const runtime = await resolveRuntime(started, agentPackage, plan);
  const inference = offer && runtime && { ...offer, imageId: runtime.imageId };
  const base = { ...started, inference };
  const tasks = await orderedTasks(host, plan, cache, agentPackage, mechanism, base, runtime, packages);
  const capacity = await capacityOf(plan, info, mechanism, base.diskPath);
  for (const task of tasks) verifyFits(capacity, task, plan);
  const [first, ...others] = tasks.map(({ trial }) => trial);
  if (cache.toolchainPath === null || first === undefined) {
    throw new EvaluatorError('cache_toolchain_missing', `${cache.directory}: no toolchain.tar; bake again`);
  }
  const context = await prepareEngine(base, cache.toolchainPath, [first, ...others], packages.wheels);
  return { plan, pinned, cache, agentPackage, dependencies: packages.list, tasks, context, capacity };
}
