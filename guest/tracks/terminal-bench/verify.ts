import { EvaluatorError } from '../../errors.ts';
import type { CachedTask, TaskFile } from '../../tasks/types.ts';
import { chargedTo, interference, verifySameContainer } from '../../trial/faults.ts';
import { createSandbox, type Sandbox, startHolder } from '../../trial/sandbox.ts';
import type { TrialContext, TrialTask, Upload } from '../../trial/session.ts';
import {
  runFreshLife,
  runLiveVerifier,
  runSecondLife,
  uploadTests,
  type VerifierEnd,
} from '../../trial/verifier-life.ts';
import { type Collected, collect, readTestOutput } from './collect.ts';

/** A task with what its verification needs; `tests` are read only when no agent of it will start again. */
export interface VerifiedTask {
  trial: TrialTask;
  evidence: CachedTask['evidence'];
  tests: () => Promise<TaskFile[]>;
  /** What an abort may say of a broken verifier: nothing that a hidden test wrote, when ranked (spec/03). */
  disclosure: 'full' | 'codes_only';
}

export interface Verification {
  reward: number;
  /** Wall time of the tests themselves, ms. */
  verifierMs: number;
  /** What test.sh printed; null when ranked: no byte of a container is kept then (spec/03). */
  testOutput: Buffer | null;
}

/** Paths below tests/, as the second life expects them. */
export function testUploads(tests: readonly TaskFile[]): Upload[] {
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
  target: Pick<Sandbox, 'containerId' | 'secretPath' | 'commitment'>,
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

/**
 * Verifies a rep whose agent is dead (or, `live`, has ended) and returns its reward in [0,1].
 * @throws RepFailed when the container cannot take the tests; verifier_broken, verifier_unserved,
 * engine_broken, container_interfered when the run must end.
 */
export async function verifyRep(
  context: TrialContext,
  sandbox: Sandbox,
  task: VerifiedTask,
): Promise<Verification> {
  const tests = testUploads(await task.tests());
  const mode = task.trial.verifier.mode;
  const own = mode === 'live' ? sandbox : { ...sandbox, started: null };
  const charged = <T>(call: () => Promise<T>) =>
    chargedTo(context, own, task.trial, 'malformed_output', call);
  if (sandbox.network !== 'none')
    await charged(() => context.engine.disconnect(sandbox.network, sandbox.containerId));
  await charged(() => uploadTests(context, sandbox, task.trial, tests));
  const run = mode === 'live' ? runLiveVerifier : runSecondLife;
  const attempt = await charged(() => afterUpload(context, task, sandbox, run));
  if (attempt.end !== 'ended' && (await charged(() => verifySameContainer(context, own))))
    throw interference(sandbox.containerId, 'restarted');
  const { verifierMs } = attempt;
  const testOutput =
    task.disclosure === 'full' ? await readTestOutput(context.engine, sandbox.containerId) : null;
  if (attempt.end === 'timeout' || attempt.end === 'disk_limit') return { reward: 0, verifierMs, testOutput };
  if (attempt.collected && proves(attempt))
    return { reward: attempt.collected.reward, verifierMs, testOutput };
  await verifyVerifier(context, task, tests);
  return { reward: 0, verifierMs, testOutput };
}

const TRIVIAL_TEST = Buffer.from('#!/opt/evaluator/busybox sh\necho 1 >/logs/verifier/reward.txt\n');

/**
 * Preflight's control of an image: a trivial test of our own runs in a second life and its reward is read,
 * while the task's own tests are still out of reach (spec/03, Reward).
 * @throws verifier_broken, engine_*.
 */
export async function verifyVerifierPath(context: TrialContext, trial: TrialTask): Promise<void> {
  const task: VerifiedTask = {
    trial: { ...trial, network: 'none', verifier: { mode: 'restart', timeoutMs: 60_000, env: {} } },
    evidence: { kind: 'none', passed: null },
    tests: async () => [],
    disclosure: 'codes_only',
  };
  await verifyVerifier(context, task, [{ path: 'test.sh', bytes: TRIVIAL_TEST, executable: true }]);
}
