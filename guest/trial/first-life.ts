import type { VerifierMode } from '../wire/plan.ts';
import type { FailureCode, RepRecord, RepValue } from '../wire/score-record.ts';
import { type AgentLife, createAgentExec, killSandbox, runAgent } from './agent-life.ts';
import { writtenBytes } from './disk-watch.ts';
import { chargedTo, RepFailed, withStartRetries } from './faults.ts';
import type { Reading } from './judge.ts';
import { Phases } from './phases.ts';
import { createSandbox, firstLifeTar, type Sandbox, startHolder } from './sandbox.ts';
import type { TrialAgent, TrialContext, TrialTask } from './session.ts';

/** A rep whose agent is dead: failed, or waiting in its stopped container for the task's tests. */
export interface FirstLife {
  rep: number;
  sandbox: Sandbox;
  reading: Reading;
  failure: FailureCode | null;
  output: AgentLife['output'];
  startedMs: number;
  startRetries: number;
  phases: Phases;
}

interface Ready {
  sandbox: Sandbox;
  execId: string;
}

/** Everything before the agent's exec: undone when it fails, so that it can be made again. */
async function prepare(
  context: TrialContext,
  task: TrialTask,
  agent: TrialAgent,
  rep: number,
  phases: Phases,
): Promise<Ready> {
  const created = await phases.time('create', () =>
    createSandbox(context, task, `${task.taskId}#${rep}`, 'trial'),
  );
  try {
    await phases.time('upload', () =>
      context.uploads(() => context.engine.putArchive(created.containerId, '/', firstLifeTar(task, agent))),
    );
    const sandbox = await phases.time('start', () => startHolder(context, created, task));
    const execId = await phases.time('exec', () => createAgentExec(context, sandbox, task, agent));
    return { sandbox, execId };
  } catch (error) {
    // What cannot be removed now is left to the sweep; the first failure is the one that counts.
    await context.engine.remove(created.containerId).catch(() => undefined);
    throw error;
  }
}

/** What was written within storage_mb, or `disk_limit`; a size that cannot be read in time is too much. */
async function verifyDisk(context: TrialContext, sandbox: Sandbox, task: TrialTask): Promise<void> {
  const bytes = await chargedTo(context, sandbox, task, 'disk_limit', () =>
    writtenBytes(context.engine, sandbox.containerId),
  );
  if (bytes > task.limits.storage_bytes) throw new RepFailed('disk_limit');
}

/**
 * One repetition's first life: container, upload, agent, budgets, kill. The agent is started at most once,
 * whatever fails. `runStartMs`: the run's start on the context's clock.
 */
export async function runFirstLife(
  context: TrialContext,
  task: TrialTask,
  agent: TrialAgent,
  rep: number,
  runStartMs: number,
): Promise<FirstLife> {
  const phases = new Phases(context.clock);
  const { value: ready, retries } = await withStartRetries(context, () =>
    prepare(context, task, agent, rep, phases),
  );
  const startedMs = Math.round(context.clock.monotonicMs() - runStartMs);
  const life = await phases.time('agent', () => runAgent(context, ready.sandbox, task, ready.execId));
  const first: FirstLife = { rep, ...ready, ...life, startedMs, startRetries: retries, phases };
  try {
    // The services of a live task go on until its tests have ended; a failed rep has none.
    const live = task.verifier.mode === 'live' && life.failure === null;
    if (life.running && !live) await phases.time('kill', () => killSandbox(context, ready.sandbox, task));
    if (life.failure === null) await phases.time('size', () => verifyDisk(context, ready.sandbox, task));
    return first;
  } catch (error) {
    if (!(error instanceof RepFailed)) throw error;
    return { ...first, failure: first.failure ?? error.failure };
  }
}

/** What a track makes of a rep: its value, null when the rep failed, and what stands behind it. */
export interface RepJudgement {
  value: RepValue | null;
  probeSha256: string | null;
  verifierMode: VerifierMode | null;
}

/** What the record says of a rep. */
export function repRecord(first: FirstLife, task: TrialTask, judgement: RepJudgement): RepRecord {
  const { reading, failure, sandbox } = first;
  return {
    rep: first.rep,
    outcome: failure === null ? 'completed' : 'failed',
    value: failure === null ? judgement.value : null,
    failure,
    started_ms: first.startedMs,
    wall_ms: reading.wallMs,
    cpu_ms: reading.cpuMs,
    memory_peak_bytes: reading.memoryPeakBytes,
    oom_kills: reading.oomKills,
    throttled_ms: reading.throttledMs,
    image_id: task.image.id,
    container_id: sandbox.containerId,
    probe_sha256: judgement.probeSha256,
    verifier_mode: judgement.verifierMode,
    start_retries: first.startRetries,
  };
}
