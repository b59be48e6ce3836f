import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import type { FailureCode } from '../wire/score-record.ts';
import { verifyEngine } from './control.ts';
import type { Sandbox } from './sandbox.ts';
import type { TrialContext, TrialTask } from './session.ts';

/** A rep failed for a reason of its own; the run goes on. Never leaves guest/trial. */
export class RepFailed extends Error {
  readonly failure: FailureCode;

  constructor(failure: FailureCode, cause?: unknown) {
    super(`rep failed: ${failure}`, { cause });
    this.failure = failure;
  }
}

const ENGINE_CODES = new Set([
  'engine_unreachable',
  'engine_timeout',
  'engine_not_found',
  'engine_conflict',
  'engine_error',
]);

export function isEngineFailure(error: unknown): error is EvaluatorError {
  return isEvaluatorError(error) && ENGINE_CODES.has(error.code);
}

/**
 * The container is the one whose holder we started: not paused, removed, restarted or replaced, which
 * nobody can do from inside (spec/02).
 * @throws container_interfered, whatever a control would say.
 */
export async function verifySameContainer(context: TrialContext, sandbox: Sandbox): Promise<void> {
  const interfered = (what: string) =>
    new EvaluatorError(
      'container_interfered',
      `container ${sandbox.containerId}: ${what} by somebody else; the run ends without a RESULT`,
    );
  let state: Awaited<ReturnType<typeof context.engine.inspect>>;
  try {
    state = await context.engine.inspect(sandbox.containerId);
  } catch (error) {
    if (isEvaluatorError(error, 'engine_not_found')) throw interfered('removed');
    throw error;
  }
  if (state.paused || state.status === 'paused') throw interfered('paused');
  if (state.startedAt !== sandbox.started.startedAt || state.restartCount !== sandbox.started.restartCount) {
    throw interfered('restarted');
  }
}

/**
 * The fault rule after an agent's exec has begun (spec/02): a failing engine call is the rep's own failure,
 * unless the container was interfered with or a control container fails too; then the run aborts.
 * @throws RepFailed with `failure`; container_interfered, engine_broken.
 */
export async function chargedTo<T>(
  context: TrialContext,
  sandbox: Sandbox,
  task: TrialTask,
  failure: FailureCode,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isEngineFailure(error)) throw error;
    await verifyEngine(context, task);
    await verifySameContainer(context, sandbox).catch((problem) => {
      if (!isEngineFailure(problem)) throw problem;
    });
    throw new RepFailed(failure, error);
  }
}

/**
 * Before the agent's exec: a failing attempt is undone and made again, at most `maxStartRetries` times,
 * and each failed one is counted (spec/02). Anything that is not an engine's failure is thrown at once.
 */
export async function withStartRetries<T>(
  context: TrialContext,
  attempt: () => Promise<T>,
): Promise<{ value: T; retries: number }> {
  for (let retries = 0; ; retries++) {
    try {
      return { value: await attempt(), retries };
    } catch (error) {
      if (!isEngineFailure(error)) throw error;
      context.counters.faults++;
      if (retries >= context.maxStartRetries) throw error;
    }
  }
}
