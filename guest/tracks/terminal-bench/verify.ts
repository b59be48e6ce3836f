import { EvaluatorError } from '../../errors.ts';
import type { TaskFile } from '../../tasks/types.ts';
import { chargedTo, interference, verifySameContainer, type Watched } from '../../trial/faults.ts';
import { createSandbox, type Sandbox, startHolder } from '../../trial/sandbox.ts';
import type { TrialContext, TrialTask, Upload } from '../../trial/session.ts';
import {
  runFreshLife,
  runLiveVerifier,
  runSecondLife,
  type Target,
  uploadTests,
  type VerifierEnd,
} from '../../trial/verifier-life.ts';
import type { TrackTask } from '../track.ts';
import { inFreshContainer } from './artifact.ts';
import { type Collected, collect, readTestOutput } from './collect.ts';

/** A task with what its verification needs; `tests` are read only when no agent of it will start again. */
export type VerifiedTask = Omit<TrackTask, 'audited'>;

export interface Verification {
  reward: number;
  /** Passed tests of the report that proves that tests ran; null without one. */
  passed: number | null;
  /** Wall time of the tests themselves, ms. */
  verifierMs: number;
  /** What test.sh printed; null when ranked: no byte of a container is kept then (spec/03). */
  testOutput: Buffer | null;
}

/** Paths below tests/, as the second life expects them. */
function testUploads(tests: readonly TaskFile[]): Upload[] {
  return tests.map(({ path, bytes, executable }) => ({
    path: path.replace(/^tests\//, ''),
    bytes,
    executable,
  }));
}

interface Attempt {
  end: VerifierEnd;
  collected: Collected | null;
  verifierMs: number;
}

const proves = (attempt: Attempt) =>
  attempt.end === 'ended' && attempt.collected?.proof === 'shown' && attempt.collected.unserved.length === 0;

async function afterUpload(
  context: TrialContext,
  task: VerifiedTask,
  target: Target,
  run: typeof runSecondLife,
): Promise<Attempt> {
  const start = context.clock.monotonicMs();
  const end = await run(context, target, task.trial);
  const verifierMs = context.clock.monotonicMs() - start;
  const collected = end === 'ended' ? await collect(context.engine, target.containerId, task.evidence) : null;
  return { end, collected, verifierMs };
}

/**
 * The same verification in a fresh container of the task's own image, without the agent's files. Proof
 * there: the agent broke its verifier. None there: the verifier is broken.
 * @throws verifier_broken, verifier_unserved: the run ends without a RESULT.
 */
async function verifyVerifier(
  context: TrialContext,
  task: VerifiedTask,
  tests: readonly Upload[],
): Promise<void> {
  // Without a network, as a rep's tests.
  const trial: TrialTask = { ...task.trial, network: 'none' };
  const created = await createSandbox(context, trial, trial.taskId, 'control');
  try {
    let run = runFreshLife;
    if (task.trial.verifier.mode === 'live') {
      await startHolder(context, created, task.trial);
      run = runLiveVerifier;
    }
    await uploadTests(context, created, task.trial, tests);
    const attempt = await afterUpload(context, task, created, run);
    if (proves(attempt)) return;
    const unserved = attempt.collected?.unserved[0];
    const detail =
      task.disclosure === 'full' && unserved ? `: ${JSON.stringify(unserved.slice(0, 200))}` : '';
    throw new EvaluatorError(
      unserved ? 'verifier_unserved' : 'verifier_broken',
      `task ${task.trial.taskId}: its tests do not run in a fresh container either (${attempt.end})${detail}; ` +
        'see docs/verifier-front.md for what tests may ask for',
    );
  } finally {
    // A late remove is left to the sweep (spec/02).
    await context.engine.remove(created.containerId).catch(() => undefined);
  }
}

/** Where a rep's tests run. `watched`: as what the container must be found when they do not end well. */
interface Place {
  target: Target;
  watched: Watched;
  run: typeof runSecondLife;
}

/** Runs the tests in place of what the agent left, and reads what they say. @throws as verifyRep. */
async function verifyAt(
  context: TrialContext,
  task: VerifiedTask,
  tests: readonly Upload[],
  { target, watched, run }: Place,
): Promise<Verification> {
  const charged = <T>(call: () => Promise<T>) =>
    chargedTo(context, watched, task.trial, 'malformed_output', call);
  await charged(() => uploadTests(context, target, task.trial, tests));
  const attempt = await charged(() => afterUpload(context, task, target, run));
  if (attempt.end !== 'ended' && (await charged(() => verifySameContainer(context, watched))))
    throw interference(target.containerId, 'restarted');
  const { verifierMs } = attempt;
  const testOutput =
    task.disclosure === 'full' ? await readTestOutput(context.engine, target.containerId) : null;
  const wrong = { reward: 0, passed: null, verifierMs, testOutput };
  if (attempt.end === 'timeout' || attempt.end === 'disk_limit') return wrong;
  if (attempt.collected && proves(attempt)) {
    const { reward, passed } = attempt.collected;
    return { reward, passed, verifierMs, testOutput };
  }
  await verifyVerifier(context, task, tests);
  return wrong;
}

/**
 * Verifies a rep whose agent is dead (or, `live`, has ended) and returns its reward in [0,1].
 * @throws RepFailed when the container cannot take the tests, or give its artifacts; verifier_broken,
 * verifier_unserved, engine_broken, container_interfered when the run must end.
 */
export async function verifyRep(
  context: TrialContext,
  sandbox: Sandbox,
  task: VerifiedTask,
): Promise<Verification> {
  const tests = testUploads(await task.tests());
  const { mode } = task.trial.verifier;
  if (mode === 'artifact') {
    return inFreshContainer(context, sandbox, task.trial, (fresh) => {
      const watched = { containerId: fresh.containerId, started: null };
      return verifyAt(context, task, tests, { target: fresh, watched, run: runFreshLife });
    });
  }
  const watched = mode === 'live' ? sandbox : { ...sandbox, started: null };
  if (sandbox.network !== 'none')
    await chargedTo(context, watched, task.trial, 'malformed_output', () =>
      context.engine.disconnect(sandbox.network, sandbox.containerId),
    );
  const run = mode === 'live' ? runLiveVerifier : runSecondLife;
  return verifyAt(context, task, tests, { target: sandbox, watched, run });
}

const TRIVIAL_TEST = Buffer.from('#!/opt/evaluator/busybox sh\necho 1 >/logs/verifier/reward.txt\n');

/**
 * Preflight's control of an image: a trivial test of our own runs in a second life and its reward is read,
 * while the task's own tests are still out of reach (spec/03, Reward).
 * @throws verifier_broken, engine_*.
 */
export async function verifyVerifierPath(context: TrialContext, trial: TrialTask): Promise<void> {
  const task: VerifiedTask = {
    trial: {
      ...trial,
      network: 'none',
      verifier: { mode: 'restart', artifactPaths: [], timeoutMs: 60_000, env: {} },
    },
    evidence: { kind: 'none', passed: null },
    tests: async () => [],
    disclosure: 'codes_only',
  };
  await verifyVerifier(context, task, [{ path: 'test.sh', bytes: TRIVIAL_TEST, executable: true }]);
}
