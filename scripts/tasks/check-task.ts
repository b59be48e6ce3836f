import { trackKind } from '../../guest/consensus/track-kind.ts';
import { isEvaluatorError } from '../../guest/errors.ts';
import { resolveImages } from '../../guest/stages/images.ts';
import { toTrialTask } from '../../guest/stages/trial-task.ts';
import { artifactPathsProblem } from '../../guest/tasks/artifact-paths.ts';
import type { ManifestTask } from '../../guest/tasks/manifest.ts';
import type { VerifiedTask } from '../../guest/tracks/terminal-bench/verify.ts';
import type { TrialTask } from '../../guest/trial/session.ts';
import { trackRules } from '../../guest/wire/mechanism.ts';
import type { VerifierMode } from '../../guest/wire/plan.ts';
import type { BuiltinAgent } from '../agent/builtin.ts';
import { runAuditLives } from './check-audit.ts';
import { agentOf, type CheckedTask, cachedTask, type OnLog } from './check-inputs.ts';
import { type Judged, runLife } from './check-life.ts';
import type { CheckSession } from './check-session.ts';
import { type CheckVerdict, checkVerdict, wrongRep } from './check-verdict.ts';

/** What a check found out about a task. */
export interface TaskCheck {
  taskId: string;
  track: string;
  image: string;
  verdict: CheckVerdict['verdict'];
  /** The strictest mode in which it is stable; null: it is not. */
  mode: VerifierMode | null;
  /** What mode `artifact` carries over. */
  artifactPaths: readonly string[];
  evidence: ManifestTask['evidence'];
  /** The first oracle in the modes that are stricter than the one it passed in. */
  stricter: readonly Judged[];
  oracle: readonly Judged[];
  nop: readonly Judged[];
  /** Why it is not stable; null: it is. */
  reason: string | null;
}

type Modes = [VerifierMode, ...VerifierMode[]];

interface Prepared {
  session: CheckSession;
  /** Modes in which the agent is dead, the strictest first. */
  dead: Modes;
  artifactPaths: readonly string[];
  task: (mode: VerifierMode) => VerifiedTask;
  life: (agent: BuiltinAgent, rep: number, modes: Modes) => Promise<Judged[]>;
}

async function prepare(session: CheckSession, checked: CheckedTask, onLog: OnLog): Promise<Prepared> {
  const { source, entry } = checked;
  const task = cachedTask(checked);
  const image = (await resolveImages(session.context, [task])).get(source.taskId) as TrialTask['image'];
  const named = source.config.verifier.artifactPaths;
  const artifactPaths = named.length > 0 ? named : [image.workdir];
  const trial = (mode: VerifierMode): TrialTask =>
    toTrialTask(
      { ...task, verifierMode: mode, artifactPaths: mode === 'artifact' ? artifactPaths : [] },
      {
        task_id: task.taskId,
        task_digest: task.taskDigest,
        image: task.image,
        verifier: mode,
        network: source.config.environment.allowInternet ? 'open' : 'none',
        budgets: null,
      },
      trackRules(session.mechanism, entry.track),
      image,
    );
  const tests = source.files.filter(({ path }) => path.startsWith('tests/'));
  const verified = (mode: VerifierMode): VerifiedTask => ({
    trial: trial(mode),
    evidence: { ...entry.evidence, passed: null },
    tests: async () => tests,
    disclosure: 'full',
  });
  return {
    session,
    dead: artifactPathsProblem(artifactPaths) === null ? ['artifact', 'restart'] : ['restart'],
    artifactPaths,
    task: verified,
    life: async (name, rep, modes) =>
      runLife({
        session,
        task: verified,
        agent: await agentOf(name, source),
        rep,
        modes,
        onLog: (log) => onLog(source.taskId, name, rep, log),
      }),
  };
}

/** The first oracle's judgements, the strictest mode that gave reward 1 last; `live` only where it is marked. */
async function probe(prepared: Prepared, isLive: boolean): Promise<Judged[]> {
  const judged = await prepared.life('oracle', 0, prepared.dead);
  if (!isLive || judged.at(-1)?.reward === 1) return judged;
  return [...judged, ...(await prepared.life('oracle', 0, ['live']))];
}

/**
 * Oracle to 1 and nop to 0, r times each, in the strictest mode in which the first oracle passes: `artifact`, else
 * `restart`, else `live` where the task is marked. Runs by the guest's own trial code; an error that would end a
 * run is the task's reason, with its code.
 */
export async function checkTask(
  session: CheckSession,
  checked: CheckedTask,
  reps: number,
  onLog: OnLog,
): Promise<TaskCheck> {
  const { entry } = checked;
  const found: TaskCheck = {
    taskId: entry.task_id,
    track: entry.track,
    image: entry.image,
    verdict: 'failing',
    mode: null,
    artifactPaths: [],
    evidence: entry.evidence,
    stricter: [],
    oracle: [],
    nop: [],
    reason: null,
  };
  try {
    if (trackKind(entry.track) !== 'terminal-bench') {
      const lives = (agent: BuiltinAgent) => runAuditLives(session, checked, agent, reps, onLog);
      const [oracle, nop] = [await lives('oracle'), await lives('nop')];
      const { verdict, reason } = checkVerdict('none', oracle, nop);
      return { ...found, verdict, reason, oracle, nop, mode: verdict === 'stable' ? 'restart' : null };
    }
    const prepared = await prepare(session, checked, onLog);
    const probed = await probe(prepared, entry.verifier === 'live');
    const last = probed.at(-1);
    if (last?.reward !== 1) return { ...found, oracle: probed, reason: wrongRep(last ? [last] : [], []) };
    const modes: Modes = [last.mode];
    const lives = (agent: BuiltinAgent, from: number) =>
      Promise.all(Array.from({ length: reps - from }, (_, rep) => prepared.life(agent, rep + from, modes)));
    const [others, idle] = await Promise.all([lives('oracle', 1), lives('nop', 0)]);
    const oracle = [last, ...others.flat()];
    const nop = idle.flat();
    const { verdict, passed, reason } = checkVerdict(entry.evidence.kind, oracle, nop);
    const evidence = { kind: entry.evidence.kind, passed };
    const judged = { ...found, verdict, reason, evidence, stricter: probed.slice(0, -1), oracle, nop };
    if (verdict !== 'stable') return judged;
    const artifactPaths = last.mode === 'artifact' ? prepared.artifactPaths : [];
    return { ...judged, mode: last.mode, artifactPaths };
  } catch (error) {
    if (!isEvaluatorError(error)) throw error;
    return { ...found, reason: `${error.code}: ${error.message}` };
  }
}
