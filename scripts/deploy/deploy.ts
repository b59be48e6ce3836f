import { EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import type { Cloud, Created } from './cloud.ts';
import type { Order } from './order.ts';
import { affordable, provision, sealVariables, verifyCreated } from './prepare.ts';
import { type Creation, type Made, removeMade } from './removal.ts';
import { costOf, formatUsd, type NanoUsd } from './usd.ts';
import { isOpen } from './verdict.ts';
import { type WatchDeps, type Watched, watch } from './watch.ts';

export interface DeployDeps extends WatchDeps {
  /** Called with what an hour costs, before anything is paid for; what it throws ends the deployment. */
  beforeCreation: (hourly: NanoUsd) => void;
}

/** @throws challenge_unreachable, deploy_not_planned, deploy_outcome_unknown. */
async function verifyAwaiting({ awaited }: Order, ask: WatchDeps['ask']): Promise<void> {
  const word = await ask();
  if (!word)
    throw new EvaluatorError('challenge_unreachable', `GET ${awaited.url}: no answer; nothing was created`);
  if (!isOpen(word))
    throw new EvaluatorError(
      'deploy_not_planned',
      `the challenge waits for nothing: it is ${word.state}; nothing was created`,
    );
}

/** What an unsuccessful creation leaves: anything but a refusal may have made a VM. */
function creationOf(error: unknown): Creation {
  const refusals = ['cloud_refused', 'cloud_unauthorized', 'cloud_rate_limited'] as const;
  return refusals.some((code) => isEvaluatorError(error, code)) ? 'refused' : 'silent';
}

/** Runs `body` and then deletes what `made` has come to be, however `body` ended. */
async function withRemoval<T>(
  made: Made,
  { cloud, clock, show }: WatchDeps,
  hourly: NanoUsd,
  body: () => Promise<T>,
): Promise<T> {
  const remove = async () => {
    if (made.creation === 'unasked') return;
    show({ event: 'progress', message: `deleting ${made.name}` });
    await removeMade(made, cloud, clock, formatUsd(hourly));
    show({ event: 'progress', message: `${made.name} is deleted` });
  };
  let value: T;
  try {
    value = await body();
  } catch (error) {
    // Told now: should the deletion fail too, that is what the program ends with.
    if (isEvaluatorError(error)) show({ event: 'error', code: error.code, message: error.message });
    await remove();
    throw error;
  }
  await remove();
  return value;
}

/** @param made told what may exist from now on. */
async function createVm(made: Made, create: () => ReturnType<Cloud['create']>): Promise<Created> {
  try {
    made.creation = 'silent';
    const created = await create();
    made.creation = 'created';
    made.id = created.id;
    return created;
  } catch (error) {
    made.creation = creationOf(error);
    throw error;
  }
}

/**
 * One deployment, from its price to the challenge's word. Nothing is paid for before the price, the compose
 * hash and the key for variables were checked; nothing that was created outlives it.
 * @throws deploy_*, cloud_*, challenge_unreachable, and the signal's reason.
 */
export async function deploy(order: Order, deps: DeployDeps): Promise<Watched> {
  const { cloud, ask, show, signal, beforeCreation } = deps;
  const say = (message: string) => show({ event: 'progress', message });
  const hourly = await affordable(cloud, order);
  const most = formatUsd(costOf(hourly, order.timeoutMs));
  say(
    `${order.instanceType}: ${formatUsd(hourly)} per hour, at most ${most} until --timeout; the disk may be billed apart`,
  );
  await verifyAwaiting(order, ask);
  const offered = await provision(cloud, order);
  say(`compose hash ${order.composeHash}, at the cloud too`);
  const encryptedEnv = await sealVariables(cloud, order, offered);
  const { appId, composeHash, kmsId } = offered;
  const { envNames } = order;
  const made: Made = { name: order.name, appId, creation: 'unasked', id: null };
  signal.throwIfAborted();
  beforeCreation(hourly);
  return withRemoval(made, deps, hourly, async () => {
    say(`creating ${order.name}; if this program is killed, delete that VM by hand`);
    const created = await createVm(made, () =>
      cloud.create({ appId, composeHash, kmsId, encryptedEnv, envNames }),
    );
    verifyCreated(created, order, offered);
    return watch(order, deps);
  });
}
