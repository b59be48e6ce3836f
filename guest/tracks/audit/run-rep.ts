import { readSingleFile } from '../../engine/read-file.ts';
import type { TaskFile } from '../../tasks/types.ts';
import { chargedTo, RepFailed, verifyStillDead } from '../../trial/faults.ts';
import { type FirstLife, runFirstLife } from '../../trial/first-life.ts';
import type { TrialAgent } from '../../trial/session.ts';
import { sha256Hex } from '../../wire/digest.ts';
import type { TrackRun, TrackTask } from '../track.ts';
import { MAX_RESULT_BYTES } from './agent-result.ts';
import { contextJson, repFiles } from './files.ts';
import { RESULT } from './paths.ts';
import { isAlive, MAX_PROBE_BYTES, newProbe, type Probe } from './probe.ts';

/** A rep whose agent is dead, and what it said. */
export interface AuditedRep<Answer> {
  first: FirstLife;
  /** null when the rep failed. */
  answer: Answer | null;
  /** result.json as it was left, where its size can be read and the run may keep it. */
  written: Buffer | null;
  /** Of what the agent was to write; tells the reps of a record apart. */
  probeSha256: string;
}

/** How a track reads result.json; null: `malformed_output`. */
export type ParseAnswer<Answer> = (bytes: Buffer) => Answer | null;

/**
 * Reads probe and answer from the stopped container, and makes sure that nobody has touched it meanwhile.
 * @throws RepFailed: `liveness`, `malformed_output`; container_interfered, engine_broken.
 */
async function collect<Answer>(
  run: TrackRun,
  task: TrackTask,
  { sandbox }: FirstLife,
  probe: Probe,
  parse: ParseAnswer<Answer>,
): Promise<Answer> {
  const { context } = run;
  const charged = <T>(call: () => Promise<T>) =>
    chargedTo(context, sandbox, task.trial, 'malformed_output', call);
  const read = async (path: string, maxBytes: number): Promise<Buffer | null> => {
    const found = await charged(() => readSingleFile(context.engine, sandbox.containerId, path, maxBytes));
    return found.kind === 'file' ? found.bytes : null;
  };
  const alive = isAlive(probe, await read(probe.path, MAX_PROBE_BYTES));
  const result = alive ? await read(RESULT, MAX_RESULT_BYTES) : null;
  await charged(() => verifyStillDead(context, sandbox));
  if (!alive) throw new RepFailed('liveness');
  const answer = result && parse(result);
  if (answer === null) throw new RepFailed('malformed_output');
  return answer;
}

/**
 * One rep of an audit: the artifact, a context with a fresh probe, the agent, and what it left when it is dead.
 * Its container stays. @throws EvaluatorError when the run must end.
 */
export async function runAudit<Answer>(
  run: TrackRun,
  task: TrackTask,
  agent: TrialAgent,
  rep: number,
  audited: readonly TaskFile[],
  parse: ParseAnswer<Answer>,
): Promise<AuditedRep<Answer>> {
  const probe = newProbe();
  const context = contextJson(run.track, task.trial.limits, probe);
  const trial = { ...task.trial, files: [...task.trial.files, ...repFiles(audited, context)] };
  const first = await runFirstLife(run.context, trial, agent, rep, run.runStartMs);
  const probeSha256 = sha256Hex(probe.content);
  const audit = { first, answer: null, written: null as Buffer | null, probeSha256 };
  if (first.failure !== null) return audit;
  const kept: ParseAnswer<Answer> = (bytes) => {
    if (task.disclosure === 'full') audit.written = bytes;
    return parse(bytes);
  };
  try {
    const answer = await first.phases.time('collect', () => collect(run, task, first, probe, kept));
    return { ...audit, answer };
  } catch (error) {
    if (!(error instanceof RepFailed)) throw error;
    return { ...audit, first: { ...first, failure: error.failure } };
  }
}
