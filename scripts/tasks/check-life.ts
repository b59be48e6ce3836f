import type { Engine } from '../../guest/engine/port.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { type Verification, type VerifiedTask, verifyRep } from '../../guest/tracks/terminal-bench/verify.ts';
import { RepFailed } from '../../guest/trial/faults.ts';
import { type FirstLife, runFirstLife } from '../../guest/trial/first-life.ts';
import type { TrialAgent, TrialContext } from '../../guest/trial/session.ts';
import type { VerifierMode } from '../../guest/wire/plan.ts';
import type { CheckSession } from './check-session.ts';

/** How one rep was judged in one mode. */
export interface Judged {
  mode: VerifierMode;
  /** `reward 1`, a failure code, or an error's code with what it says. */
  outcome: string;
  reward: number | null;
  /** Passed tests; null without a report. */
  passed: number | null;
  agentMs: number;
  testsMs: number;
}

/** What is left of a rep for a person to read. */
export interface LifeLog {
  first: FirstLife;
  mode: VerifierMode;
  testOutput: Buffer | null;
}

export interface Life {
  session: CheckSession;
  /** The task in a mode. */
  task: (mode: VerifierMode) => VerifiedTask;
  agent: TrialAgent;
  rep: number;
  /** Tried in this order on the same dead container, until one gives reward 1; `live` stands alone. */
  modes: readonly [VerifierMode, ...VerifierMode[]];
  onLog: (log: LifeLog) => Promise<void>;
}

/** The engine, which keeps one container until we remove it ourselves: another mode may follow. */
function keeping(engine: Engine, containerId: () => string | null): Engine {
  return new Proxy(engine, {
    get: (target, name: keyof Engine) => {
      if (name !== 'remove') return target[name];
      return async (id: string) => (id === containerId() ? undefined : target.remove(id));
    },
  });
}

async function judgeIn(
  mode: VerifierMode,
  life: Life,
  context: TrialContext,
  first: FirstLife,
): Promise<Judged> {
  const judged = { mode, reward: null, passed: null, agentMs: first.reading.wallMs, testsMs: 0 };
  let verified: Verification;
  try {
    verified = await verifyRep(context, first.sandbox, life.task(mode));
  } catch (error) {
    if (error instanceof RepFailed) return { ...judged, outcome: error.failure };
    throw error;
  }
  const { reward, passed, verifierMs, testOutput } = verified;
  await life.onLog({ first, mode, testOutput });
  return { ...judged, outcome: `reward ${reward}`, reward, passed, testsMs: verifierMs };
}

/**
 * One agent's life, judged by the guest's own trial code in one mode or, where the first of them does not give
 * reward 1, in the next too. @throws EvaluatorError: what would end a run, a verifier that is broken among it.
 */
export async function runLife(life: Life): Promise<Judged[]> {
  const { context, capacity } = life.session;
  const [firstMode] = life.modes;
  const { trial } = life.task(firstMode);
  const { nano_cpus, memory_bytes, storage_bytes } = trial.limits;
  // The disk of an agent's container and of the one that its artifacts are carried into.
  const need = { cpus: nano_cpus / 1e9, memoryBytes: memory_bytes, diskBytes: 2 * storage_bytes, slots: 1 };
  const lacking = capacity.neverFits(need);
  if (lacking !== null)
    throw new EvaluatorError(
      'task_too_large',
      `task ${trial.taskId}: its agent and its tests want ${lacking}; use a larger machine, or leave the task out`,
    );
  const release = await capacity.acquire(need, 0);
  let kept: string | null = null;
  try {
    const first = await runFirstLife(context, trial, life.agent, life.rep, context.clock.monotonicMs());
    kept = first.sandbox.containerId;
    if (first.failure !== null) {
      await life.onLog({ first, mode: firstMode, testOutput: null });
      const agentMs = first.reading.wallMs;
      return [{ mode: firstMode, outcome: first.failure, reward: null, passed: null, agentMs, testsMs: 0 }];
    }
    const judged: Judged[] = [];
    const kind = { ...context, engine: keeping(context.engine, () => kept) };
    for (const mode of life.modes) {
      judged.push(await judgeIn(mode, life, kind, first));
      if (judged.at(-1)?.reward === 1) break;
    }
    return judged;
  } finally {
    if (kept !== null) await context.engine.remove(kept).catch(() => undefined);
    release();
  }
}
