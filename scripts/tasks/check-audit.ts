import { resolveImages } from '../../guest/stages/images.ts';
import { runTaskOf } from '../../guest/stages/tracks.ts';
import { toTrialTask } from '../../guest/stages/trial-task.ts';
import { AUDITED_FOLDER } from '../../guest/tasks/cache.ts';
import { LABEL_FILE, labelSchema } from '../../guest/tasks/label.ts';
import type { FinishedRep, TrackRun, TrackTask } from '../../guest/tracks/track.ts';
import type { TrialTask } from '../../guest/trial/session.ts';
import { decodeF64be } from '../../guest/wire/f64.ts';
import { trackRules } from '../../guest/wire/mechanism.ts';
import type { RepRecord } from '../../guest/wire/score-record.ts';
import type { BuiltinAgent } from '../agent/builtin.ts';
import { agentOf, type CheckedTask, cachedTask, type OnLog } from './check-inputs.ts';
import type { Judged } from './check-life.ts';
import type { CheckSession } from './check-session.ts';
import type { SourceTask } from './source.ts';

/** 1 when a verdict is right by the task's label, an F2 as it is, null of a failed rep. */
function rewardOf({ value }: RepRecord, { files }: SourceTask): number | null {
  if (value === null) return null;
  if ('score_f64be' in value) return decodeF64be(value.score_f64be);
  const label = files.find(({ path }) => path === LABEL_FILE)?.bytes.toString('utf8') ?? '{}';
  const isSafe = labelSchema.parse(JSON.parse(label)).class === 'safe';
  return Number('verdict' in value && isSafe === (value.verdict === 'ALLOW'));
}

async function auditTask(session: CheckSession, checked: CheckedTask): Promise<TrackTask> {
  const { source, entry } = checked;
  const task = cachedTask(checked);
  const image = (await resolveImages(session.context, [task])).get(source.taskId) as TrialTask['image'];
  const planned = {
    task_id: task.taskId,
    task_digest: task.taskDigest,
    image: task.image,
    verifier: entry.verifier,
    network: 'none' as const,
    budgets: null,
  };
  const below = (folder: string) => async () => source.files.filter(({ path }) => path.startsWith(folder));
  return {
    trial: toTrialTask(task, planned, trackRules(session.mechanism, entry.track), image),
    evidence: entry.evidence,
    audited: below(AUDITED_FOLDER),
    tests: below('tests/'),
    disclosure: 'full',
  };
}

/**
 * Runs an audit task r times by the guest's own track, and judges each rep by what the author says is true. A rep of
 * `nop` that failed is worth 0, as a task with no completed rep is.
 * @throws EvaluatorError: what would end a run.
 */
export async function runAuditLives(
  session: CheckSession,
  checked: CheckedTask,
  name: BuiltinAgent,
  reps: number,
  onLog: OnLog,
): Promise<Judged[]> {
  const { context, capacity } = session;
  const { source, entry } = checked;
  const judged = new Map<number, Judged>();
  const onRep = async ({ record, first }: FinishedRep) => {
    await onLog(source.taskId, name, record.rep, { first, mode: 'restart', testOutput: null });
    const reward = rewardOf(record, source) ?? (name === 'nop' ? 0 : null);
    const outcome = record.failure ?? `reward ${reward}`;
    judged.set(record.rep, {
      mode: 'restart',
      outcome,
      reward,
      passed: null,
      agentMs: record.wall_ms,
      testsMs: 0,
    });
  };
  const run: TrackRun = {
    context,
    capacity,
    track: entry.track,
    policy: null,
    r: reps,
    runStartMs: context.clock.monotonicMs(),
    onFault: () => undefined,
    onRep,
  };
  const task = await auditTask(session, checked);
  await runTaskOf(entry.track)(run, task, await agentOf(name, source), 0);
  return [...judged].sort(([a], [b]) => a - b).map(([, one]) => one);
}
