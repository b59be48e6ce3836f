import { besideSandbox, SANDBOX_LIMITS } from '../trial/agent-sandbox.ts';
import type { Need, Wanted } from '../trial/capacity.ts';
import { type FirstLife, type RepJudgement, repRecord } from '../trial/first-life.ts';
import { modelAccessBytes } from '../trial/model-access.ts';
import type { TrialAgent } from '../trial/session.ts';
import type { RepRecord } from '../wire/score-record.ts';
import type { FinishedRep, TrackRun, TrackTask } from './track.ts';

type Sized = Pick<TrackTask, 'trial'>;

const ORDERS_PER_TASK = 256;
/** Whatever ends a task's waiting reps comes before what starts new ones. */
const FIRST_LIVES = 128;

/**
 * The most that one rep of this task ever holds; for refusing at preflight what can never fit. `agent` null: while
 * no agent of it lives.
 */
export function repNeed({ trial }: Sized, agent: TrialAgent | null): Wanted {
  const { nano_cpus, memory_bytes } = trial.limits;
  const memoryBytes = memory_bytes + (agent === null ? 0 : modelAccessBytes(trial));
  const need = { cpus: nano_cpus / 1e9, memoryBytes, diskBytes: 0, slots: 1 };
  return agent?.kind === 'brokered' ? besideSandbox(need) : need;
}

/**
 * What the whole task keeps until its last rep is judged: the disk of all its containers; of verifier mode
 * `artifact`, of one more, into which artifacts are carried.
 */
export function diskNeed({ trial }: Sized, agent: TrialAgent, r: number): Need {
  const containers = trial.verifier.mode === 'artifact' ? r + 1 : r;
  const sandboxes = agent.kind === 'brokered' ? SANDBOX_LIMITS.storage_bytes * r : 0;
  const diskBytes = trial.limits.storage_bytes * containers + sandboxes;
  return { cpus: 0, memoryBytes: 0, diskBytes, slots: 0 };
}

/** Where a task's parts stand among those that wait for capacity. */
export function ordersOf(index: number): {
  task: number;
  life: (rep: number) => number;
  end: (rep: number) => number;
} {
  const base = index * ORDERS_PER_TASK;
  return { task: base, life: (rep) => base + FIRST_LIVES + rep, end: (rep) => base + rep };
}

/** Runs `body` when what it needs is free, and holds that until it ends. @throws the run's fault instead. */
export async function withCapacity<T>(
  run: TrackRun,
  need: Wanted,
  order: number,
  body: () => Promise<T>,
): Promise<T> {
  const release = await run.capacity.acquire(need, order);
  try {
    run.context.signal.throwIfAborted();
    return await body();
  } finally {
    release();
  }
}

/** Waits for all of them whatever happens: nothing of a task goes on behind its back. */
export async function together<T>(run: TrackRun, parts: readonly Promise<T>[]): Promise<T[]> {
  for (const part of parts) part.catch(run.onFault);
  await Promise.allSettled(parts);
  return Promise.all(parts);
}

/** Rep numbers 0 to r - 1. */
export const repsOf = ({ r }: TrackRun): number[] => Array.from({ length: r }, (_, rep) => rep);

/** Removes a rep's container and tells of the rep. `left`: what else there is to tell. */
export async function finishRep(
  run: TrackRun,
  task: Sized,
  first: FirstLife,
  judgement: RepJudgement,
  left: Partial<Pick<FinishedRep, 'verifierMs' | 'testOutput' | 'answer'>>,
): Promise<RepRecord> {
  // A late remove is left to the sweep and changes no outcome (spec/02).
  await first.phases.time('remove', () =>
    run.context.engine.remove(first.sandbox.containerId).catch(() => undefined),
  );
  const record = repRecord(first, task.trial, judgement);
  await run.onRep({
    taskId: task.trial.taskId,
    record,
    first,
    verifierMs: 0,
    testOutput: null,
    answer: null,
    ...left,
  });
  return record;
}
