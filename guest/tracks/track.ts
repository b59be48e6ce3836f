import type { CachedTask, TaskFile } from '../tasks/types.ts';
import type { Capacity } from '../trial/capacity.ts';
import type { FirstLife } from '../trial/first-life.ts';
import type { TrialAgent, TrialContext, TrialTask } from '../trial/session.ts';
import type { Policy } from '../wire/plan.ts';
import type { RepRecord } from '../wire/score-record.ts';

/** A task as every track needs it. */
export interface TrackTask {
  trial: TrialTask;
  evidence: CachedTask['evidence'];
  /** What an agent is to audit; below environment/artifact/. */
  audited: () => Promise<TaskFile[]>;
  /** Read only when no agent of the task will start again. */
  tests: () => Promise<TaskFile[]>;
  /** What an abort may say of a broken verifier: nothing that a hidden test wrote, when ranked (spec/03). */
  disclosure: 'full' | 'codes_only';
}

/** What all tasks of a run share. */
export interface TrackRun {
  context: TrialContext;
  capacity: Capacity;
  /** In the plan and in the record; an agent is told of it. */
  track: string;
  /** null on every track but terminal-bench. */
  policy: Policy | null;
  r: number;
  /** On the context's clock. */
  runStartMs: number;
  /** Told of the fault that must end the run as soon as it shows: what still goes on is then stopped. */
  onFault: (error: unknown) => void;
  /** Told of every rep when it is done. */
  onRep: (done: FinishedRep) => Promise<void>;
}

export interface FinishedRep {
  taskId: string;
  record: RepRecord;
  first: FirstLife;
  /** 0 where no verifier ran. */
  verifierMs: number;
  /** What the tests printed, of an unranked rep; null where none ran or it could not be read. */
  testOutput: Buffer | null;
  /** What an auditing agent answered, of an unranked rep; null where there is nothing that can be read. */
  answer: Buffer | null;
}

/**
 * A track: runs a task r times, the reps as soon as they fit.
 * @param index the task's place in the plan: earlier tasks are looked at first.
 * @returns the reps in order. @throws EvaluatorError when the run must end; by then nothing of the task goes on.
 */
export type RunTask = (
  run: TrackRun,
  task: TrackTask,
  agent: TrialAgent,
  index: number,
) => Promise<RepRecord[]>;
