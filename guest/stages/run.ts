import type { FinishedRep, TrackRun } from '../tracks/track.ts';
import { endSession } from '../trial/sweep.ts';
import { decodeF64be } from '../wire/f64.ts';
import type { EvalPlan } from '../wire/plan.ts';
import type { RepRecord } from '../wire/score-record.ts';
import type { Host } from './config.ts';
import type { JournalEvent, RepFigures } from './journal.ts';
import type { UnlockedOrder } from './order.ts';
import { writeRepLogs } from './rep-logs.ts';
import { runTaskOf } from './tracks.ts';

/** The reps of every task, in the plan's order, and what the journal may say of them once it may. */
export interface RunOutcome {
  reps: readonly (readonly RepRecord[])[];
  /** Held back until the RESULT is out, when ranked (spec/03). */
  heldBack: readonly JournalEvent[];
}

/** A rep's value as people read it: the key says of which track it is. */
function shownValue({ value }: RepRecord): RepFigures {
  if (value === null || 'reward_f64be' in value) return { reward: value && decodeF64be(value.reward_f64be) };
  return 'verdict' in value ? value : { score: decodeF64be(value.score_f64be) };
}

function repEvent({ taskId, record, first, verifierMs }: FinishedRep, { ranked }: EvalPlan): JournalEvent {
  return {
    event: 'rep',
    task_id: taskId,
    rep: record.rep,
    outcome: record.outcome,
    failure: record.failure,
    ...shownValue(record),
    wall_ms: record.wall_ms,
    cpu_ms: record.cpu_ms,
    memory_peak_bytes: record.memory_peak_bytes,
    overhead_ms: first.phases.overheadMs(),
    verifier_ms: verifierMs,
    phases: first.phases.toJSON(),
    // Lengths of what a ranked agent wrote leave in no way of ours (spec/03).
    ...(ranked || first.modelUse === null ? {} : { inference: first.modelUse }),
  };
}

/**
 * Runs r reps of every task, as many at once as fit. The first fault that ends the run stops what has not
 * yet started, ends what runs, and is thrown when all of it has ended.
 * @throws EvaluatorError: the run ends without a RESULT.
 */
export async function run(order: UnlockedOrder, host: Host): Promise<RunOutcome> {
  const { plan, context, capacity } = order;
  const runTask = runTaskOf(plan.track);
  const heldBack: JournalEvent[] = [];
  const stop = new AbortController();
  const signal = AbortSignal.any([host.signal, stop.signal]);
  // Nothing of this run will be signed: agents and tests that still run are ended now.
  signal.addEventListener('abort', () => void endSession(host.engine, host.session).catch(() => 0));
  const shared: TrackRun = {
    context: { ...context, signal },
    capacity,
    track: plan.track,
    policy: plan.policy,
    r: plan.r,
    runStartMs: context.clock.monotonicMs(),
    onFault: (error) => stop.abort(error),
    onRep: async (done) => {
      if (plan.ranked) heldBack.push(repEvent(done, plan));
      else host.journal.write(repEvent(done, plan));
      if (host.config.logsDirectory !== null) await writeRepLogs(host.config.logsDirectory, done);
    },
  };
  const reps = order.tasks.map((task, index) => runTask(shared, task, task.agent, index));
  await Promise.allSettled(reps);
  signal.throwIfAborted();
  return { reps: await Promise.all(reps), heldBack };
}
