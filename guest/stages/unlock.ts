import { EvaluatorError } from '../errors.ts';
import { requestKeys } from '../golden/key-release.ts';
import { clientIdentity } from '../golden/ra-tls.ts';
import { announceStarted } from '../golden/started.ts';
import { createSteps, STEP_DEADLINES_MS, type Steps } from '../golden/steps.ts';
import type { ReleasedKeys } from '../wire/key-release.ts';
import type { Host } from './config.ts';
import type { Order, UnlockedOrder } from './order.ts';

type UnlockHost = Pick<Host, 'inputs' | 'connectAgent' | 'clock' | 'journal' | 'signal'>;

/** How long an outage of the challenge is waited out. */
const RETRY_FOR_MS = 10 * 60_000;

/** Each task's tests, opened anew with its key whenever they are read: no plain text is kept. */
function withKeys(order: Order, released: ReleasedKeys): UnlockedOrder['tasks'] {
  const keys = new Map(released.task_keys.map(({ task_id, key }) => [task_id, Buffer.from(key, 'hex')]));
  return order.tasks.map((task) => {
    const { taskId } = task.trial;
    const key = keys.get(taskId);
    if (key === undefined)
      throw new EvaluatorError('key_reply_mismatch', `key release: no key of task ${taskId}`);
    return { ...task, tests: () => order.cache.unseal(taskId, key) };
  });
}

/** Opens every blob once and drops it: a key that does not fit shows before anything has started. */
async function tryAll(tasks: UnlockedOrder['tasks'], steps: Steps): Promise<void> {
  await steps('unseal', async (signal) => {
    for (const task of tasks) {
      signal.throwIfAborted();
      await task.tests();
    }
  });
}

/**
 * Asks for the keys of a sealed cache, proves that they open it, and then, right before the first agent, says
 * that this attempt is the one that counts. Does nothing for a plan without a key release.
 * @throws guest_agent_*, attestation codes, key_*, sealed_*, cache_file_*, started_undelivered,
 * grant_superseded, unlock_timeout; the challenge's own reason for a denial.
 */
export async function unlock(order: Order, host: UnlockHost): Promise<UnlockedOrder> {
  const { plan } = order;
  if (plan.key_release === null) return { ...order, grantId: null };
  const { clock, journal, signal } = host;
  const mark = (step: Parameters<Steps>[0], at: 'begin' | 'end') =>
    journal.write({ event: 'step', step, mark: at });
  const steps = createSteps({ deadlinesMs: STEP_DEADLINES_MS, mark, signal });
  const agent = host.connectAgent();
  const exchange = {
    plan,
    keyRelease: plan.key_release,
    identity: await clientIdentity({ agent, plan, steps }),
    runToken: host.inputs.runToken,
    steps,
    clock,
    retryForMs: RETRY_FOR_MS,
    signal,
  };
  const released = await requestKeys({ ...exchange, agent });
  const tasks = withKeys(order, released);
  await tryAll(tasks, steps);
  await announceStarted({ ...exchange, grantId: released.grant_id });
  return { ...order, tasks, grantId: released.grant_id };
}
