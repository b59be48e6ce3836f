import type { ContainerState } from '../engine/port.ts';
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

/** What only the machine's owner can do to a container. */
export function interference(containerId: string, what: string): EvaluatorError {
  return new EvaluatorError(
    'container_interfered',
    `container ${containerId}: ${what} by somebody else; the run ends without a RESULT`,
  );
}

export type Watched = Pick<Sandbox, 'containerId' | 'started'>;

/** How long a container that has left Running is given to show that somebody restarts or removes it. */
const SETTLE_MS = 500;

/**
 * The container is the one whose holder we started: not paused, removed, restarted or replaced, which
 * nobody can do from inside (spec/02). Returns whether it still runs.
 * @throws container_interfered, whatever a control would say.
 */
export async function verifySameContainer(context: TrialContext, sandbox: Watched): Promise<boolean> {
  const state = await stateOf(context, sandbox);
  if (state.running) return true;
  // A restart or removal begins with an end that looks like one from inside.
  await context.clock.sleep(SETTLE_MS);
  return (await stateOf(context, sandbox)).running;
}

/** A dead agent's container is as we left it. @throws container_interfered, engine_*. */
export async function verifyStillDead(context: TrialContext, sandbox: Watched): Promise<void> {
  if ((await stateOf(context, sandbox)).running) throw interference(sandbox.containerId, 'started');
}

async function stateOf(context: TrialContext, sandbox: Watched): Promise<ContainerState> {
  const interfered = (what: string) => interference(sandbox.containerId, what);
  const state = await context.engine.inspect(sandbox.containerId).catch((error) => {
    throw isEvaluatorError(error, 'engine_not_found') ? interfered('removed') : error;
  });
  if (state.status === 'removing' || state.status === 'dead') throw interfered('removed');
  if (state.paused || state.status === 'paused') throw interfered('paused');
  if (sandbox.started === null) return state;
  const { startedAt, restartCount } = sandbox.started;
  if (state.startedAt !== startedAt || state.restartCount !== restartCount) throw interfered('restarted');
  return state;
}

/**
 * The fault rule after an agent's exec has begun (spec/02): a failing engine call is the rep's own failure,
 * unless the container was interfered with or a control container fails too; then the run aborts.
 * @throws RepFailed with `failure`; container_interfered, engine_broken.
 */
export async function chargedTo<T>(
  context: TrialContext,
  sandbox: Watched,
  task: TrialTask,
  failure: FailureCode,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isEngineFailure(error)) throw error;
    // What our own sweep has broken shows nothing.
    context.signal.throwIfAborted();
    await verifyEngine(context, task);
    await verifySameContainer(context, sandbox).catch((problem) => {
      if (!isEngineFailure(problem)) throw problem;
    });
    throw new RepFailed(failure, error);
  }
}

/** Before an agent's exec a container that somebody stopped or removed is the machine's fault as well. */
function isStartFault(error: unknown): boolean {
  return (
    isEngineFailure(error) ||
    isEvaluatorError(error, 'holder_not_running') ||
    isEvaluatorError(error, 'cgroup_unreadable')
  );
}

/**
 * Before the agent's exec: a failing attempt is undone and made again, at most `maxStartRetries` times,
 * and each failed one is counted (spec/02). Anything that is not the machine's failure is thrown at once.
 */
export async function withStartRetries<T>(
  context: Pick<TrialContext, 'signal' | 'counters' | 'maxStartRetries'>,
  attempt: () => Promise<T>,
): Promise<{ value: T; retries: number }> {
  for (let retries = 0; ; retries++) {
    context.signal.throwIfAborted();
    try {
      return { value: await attempt(), retries };
    } catch (error) {
      context.signal.throwIfAborted();
      if (!isStartFault(error)) throw error;
      context.counters.faults++;
      if (retries >= context.maxStartRetries) throw error;
    }
  }
}
