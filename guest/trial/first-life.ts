import type { Counts } from '../inference/counts.ts';
import type { VerifierMode } from '../wire/plan.ts';
import type { FailureCode, RepRecord, RepValue } from '../wire/score-record.ts';
import { type AgentLife, killSandbox, runAgent } from './agent-life.ts';
import { writtenBytes } from './disk-watch.ts';
import { chargedTo, isEngineFailure, RepFailed, withStartRetries } from './faults.ts';
import type { Reading } from './judge.ts';
import { closeModelAccess } from './model-access.ts';
import { Phases } from './phases.ts';
import { prepareRep, type Ready, type Started } from './prepare.ts';
import type { Sandbox } from './sandbox.ts';
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
  /** What the rep has used of a model; null where it had none, or the proxy cannot say. */
  modelUse: Counts | null;
}

/** What was written within storage_mb, or `disk_limit`; a size that cannot be read in time is too much. */
async function verifyDisk(context: TrialContext, { sandbox, trial }: Started): Promise<void> {
  const bytes = await chargedTo(context, sandbox, trial, 'disk_limit', () =>
    writtenBytes(context.engine, sandbox.containerId),
  );
  if (bytes > trial.limits.storage_bytes) throw new RepFailed('disk_limit');
}

/** Kills one container of a rep; where one of them was ended from inside, whichever is left. */
async function endContainer(context: TrialContext, life: AgentLife, started: Started): Promise<void> {
  if (life.running) return killSandbox(context, started.sandbox, started.trial);
  await context.engine.kill(started.sandbox.containerId).catch((error) => {
    if (!isEngineFailure(error)) throw error;
  });
}

/** The sandbox of a brokered agent has been killed: it is measured and removed. */
async function discardSandbox(
  context: TrialContext,
  life: AgentLife,
  own: Started,
  phases: Phases,
): Promise<void> {
  try {
    if (life.failure === null) await phases.time('size', () => verifyDisk(context, own));
  } finally {
    // A late remove is left to the sweep and changes no outcome (spec/02).
    await phases.time('remove', () => context.engine.remove(own.sandbox.containerId).catch(() => undefined));
  }
}

/** A rep's way to a model ends with its agent, also where the services of a live task go on. */
async function closeAccess(context: TrialContext, { access, own, task }: Ready): Promise<Counts | null> {
  if (access === null) return null;
  return closeModelAccess(context, task, (own ?? task).sandbox.containerId, access);
}

/** Runs every part, whatever of the others fails as the rep's own. @returns the first such failure. */
async function each(parts: readonly (() => Promise<void>)[]): Promise<FailureCode | null> {
  let failure: FailureCode | null = null;
  for (const part of parts) {
    try {
      await part();
    } catch (error) {
      if (!(error instanceof RepFailed)) throw error;
      failure ??= error.failure;
    }
  }
  return failure;
}

/**
 * One repetition's first life: containers, upload, agent, budgets, kill. The agent is started at most once,
 * whatever fails. `runStartMs`: the run's start on the context's clock.
 */
export async function runFirstLife(
  context: TrialContext,
  trial: TrialTask,
  agent: TrialAgent,
  rep: number,
  runStartMs: number,
): Promise<FirstLife> {
  const phases = new Phases(context.clock);
  const { value: ready, retries } = await withStartRetries(context, () =>
    prepareRep(context, trial, agent, rep, phases),
  );
  const startedMs = Math.round(context.clock.monotonicMs() - runStartMs);
  const life = await phases.time('agent', () => runAgent(context, ready));
  const { own, task } = ready;
  // The services of a live task go on until its tests have ended; a failed rep has none.
  const live = trial.verifier.mode === 'live' && life.failure === null;
  const nothingLeft = !life.running && own === null;
  let modelUse: Counts | null = null;
  // What an agent has left running works on uncharged until it is killed: where it could be of use, first of all.
  const failure = await each([
    async () => {
      if (!nothingLeft && !live) await phases.time('kill', () => endContainer(context, life, task));
    },
    async () => {
      if (own !== null) await phases.time('kill', () => endContainer(context, life, own));
    },
    async () => {
      if (own !== null) await discardSandbox(context, life, own, phases);
    },
    async () => {
      if (life.failure === null) await phases.time('size', () => verifyDisk(context, task));
    },
    async () => {
      modelUse = await phases.time('access', () => closeAccess(context, ready));
    },
  ]);
  return {
    rep,
    // The bridge to a model is gone.
    sandbox: ready.access === null ? task.sandbox : { ...task.sandbox, network: 'none' },
    reading: life.reading,
    failure: life.failure ?? failure,
    output: life.output,
    startedMs,
    startRetries: retries,
    phases,
    modelUse,
  };
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
