import type { Capacity, Need } from '../../trial/capacity.ts';
import { RepFailed } from '../../trial/faults.ts';
import { type FirstLife, repRecord, runFirstLife } from '../../trial/first-life.ts';
import type { TrialAgent, TrialContext } from '../../trial/session.ts';
import { encodeF64be } from '../../wire/f64.ts';
import type { Policy } from '../../wire/plan.ts';
import type { RepRecord } from '../../wire/score-record.ts';
import { publishedReward } from './published-reward.ts';
import { type Verification, type VerifiedTask, verifyRep } from './verify.ts';

/** What all tasks of a terminal-bench run share. */
export interface TerminalBenchRun {
  context: TrialContext;
  capacity: Capacity;
  policy: Policy;
  r: number;
  /** On the context's clock. */
  runStartMs: number;
  /** Told of the fault that must end the run as soon as it shows: what still goes on is then stopped. */
  onFault: (error: unknown) => void;
  /** Told of every rep when it is done; `verifierMs` 0 where none ran. */
  onRep: (done: FinishedRep) => Promise<void>;
}

export interface FinishedRep {
  taskId: string;
  record: RepRecord;
  first: FirstLife;
  reward: number | null;
  verifierMs: number;
  /** What the tests printed, of an unranked rep; null where none ran or it could not be read. */
  testOutput: Buffer | null;
}

const ORDERS_PER_TASK = 256;

function running(task: VerifiedTask): Need {
  const { nano_cpus, memory_bytes } = task.trial.limits;
  return { cpus: nano_cpus / 1e9, memoryBytes: memory_bytes, diskBytes: 0, slots: 1 };
}

/** What the whole task keeps until its last rep is verified: the disk of all its containers. */
export function diskNeed(task: VerifiedTask, r: number): Need {
  return { cpus: 0, memoryBytes: 0, diskBytes: task.trial.limits.storage_bytes * r, slots: 0 };
}

/** The most that one rep of this task ever holds; for refusing at preflight what can never fit. */
export function repNeed(task: VerifiedTask): Need {
  return running(task);
}

async function finish(
  run: TerminalBenchRun,
  task: VerifiedTask,
  first: FirstLife,
  verified: Verification | null,
): Promise<RepRecord> {
  const { context } = run;
  // A late remove is left to the sweep and changes no outcome (spec/02).
  await first.phases.time('remove', () =>
    context.engine.remove(first.sandbox.containerId).catch(() => undefined),
  );
  const reward = verified ? publishedReward(verified.reward, run.policy) : null;
  const record = repRecord(first, task.trial, {
    value: reward === null ? null : { reward_f64be: encodeF64be(reward) },
    probeSha256: null,
    verifierMode: first.failure === null ? task.trial.verifier.mode : null,
  });
  await run.onRep({
    taskId: task.trial.taskId,
    record,
    first,
    reward,
    verifierMs: Math.round(verified?.verifierMs ?? 0),
    testOutput: verified?.testOutput ?? null,
  });
  return record;
}

/** Verifies a completed rep; a container that cannot take its tests turns it into a failed one. */
async function verified(run: TerminalBenchRun, task: VerifiedTask, first: FirstLife): Promise<RepRecord> {
  try {
    const start = run.context.clock.monotonicMs();
    const verification = await verifyRep(run.context, first.sandbox, task);
    first.phases.add('tests', verification.verifierMs);
    first.phases.add('verify', run.context.clock.monotonicMs() - start - verification.verifierMs);
    return await finish(run, task, first, verification);
  } catch (error) {
    if (!(error instanceof RepFailed)) throw error;
    return finish(run, task, { ...first, failure: error.failure }, null);
  }
}

async function runRep(
  run: TerminalBenchRun,
  task: VerifiedTask,
  agent: TrialAgent,
  rep: number,
  order: number,
): Promise<FirstLife | RepRecord> {
  const release = await run.capacity.acquire(running(task), order);
  try {
    run.context.signal.throwIfAborted();
    const first = await runFirstLife(run.context, task.trial, agent, rep, run.runStartMs);
    if (first.failure !== null) return await finish(run, task, first, null);
    return task.trial.verifier.mode === 'live' ? await verified(run, task, first) : first;
  } finally {
    release();
  }
}

async function verifyLater(
  run: TerminalBenchRun,
  task: VerifiedTask,
  first: FirstLife,
  order: number,
): Promise<RepRecord> {
  const release = await run.capacity.acquire(running(task), order);
  try {
    run.context.signal.throwIfAborted();
    return await verified(run, task, first);
  } finally {
    release();
  }
}

/** Waits for all of them whatever happens: nothing of a task goes on behind its back. */
async function together<T>(run: TerminalBenchRun, parts: readonly Promise<T>[]): Promise<T[]> {
  for (const part of parts) part.catch(run.onFault);
  await Promise.allSettled(parts);
  return Promise.all(parts);
}

/**
 * Runs a task r times: its reps start as soon as they fit; the containers of the completed ones are kept
 * until the last agent of the task has ended, and only then see the tests (spec/03, 7).
 * @param index the task's place in the plan: earlier tasks are looked at first.
 * @throws EvaluatorError when the run must end; by then nothing of the task goes on.
 */
export async function runTask(
  run: TerminalBenchRun,
  task: VerifiedTask,
  agent: TrialAgent,
  index: number,
): Promise<RepRecord[]> {
  const base = index * ORDERS_PER_TASK;
  const releaseDisk = await run.capacity.acquire(diskNeed(task, run.r), base);
  try {
    const reps = Array.from({ length: run.r }, (_, rep) => rep);
    const lives = await together(
      run,
      reps.map((rep) => runRep(run, task, agent, rep, base + 128 + rep)),
    );
    return await together(
      run,
      lives.map(async (life, rep) => ('outcome' in life ? life : verifyLater(run, task, life, base + rep))),
    );
  } finally {
    releaseDisk();
  }
}
