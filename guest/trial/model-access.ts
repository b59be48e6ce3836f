import { randomBytes } from 'node:crypto';
import {
  type Access,
  endProxy,
  leaveBridge,
  openAccess,
  PROXY_MEMORY_BYTES,
  removeAccess,
} from '../inference/access.ts';
import type { Counts } from '../inference/counts.ts';
import { chargedTo, verifySameContainer } from './faults.ts';
import { labelsOf } from './labels.ts';
import type { Started } from './prepare.ts';
import { networkName } from './sandbox.ts';
import type { TrialContext, TrialTask } from './session.ts';

/**
 * The way to a model of one rep whose plan says `inference`; null for every other rep. A failure here started
 * no agent and may be retried (spec/02).
 * @throws engine_*, holder_not_running, container_not_as_asked.
 */
export async function openModelAccess(
  context: TrialContext,
  trial: TrialTask,
  rep: string,
): Promise<Access | null> {
  const { engine, inference: offer, session, runId, cpuShares, clock } = context;
  if (trial.network !== 'inference' || offer === null) return null;
  context.signal.throwIfAborted();
  return openAccess(
    {
      engine,
      offer,
      labels: labelsOf(session, runId, 'proxy', rep),
      cpuShares,
      outside: networkName(context),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms) => clock.sleep(ms),
    },
    `cvm-eval-${session.id}-${randomBytes(6).toString('hex')}`,
  );
}

/** Memory that a rep's way to a model takes beside its containers. */
export function modelAccessBytes({ network }: Pick<TrialTask, 'network'>): number {
  return network === 'inference' ? PROXY_MEMORY_BYTES : 0;
}

/** The container of the agent, on the bridge to its model. */
export function onBridge(trial: TrialTask, access: Access | null): TrialTask {
  return access === null ? trial : { ...trial, network: { bridge: access.network } };
}

/**
 * Closes a rep's way to a model when its agent has ended, before any test is near. A model that could not be
 * reached, or a proxy that the agent has brought down, is the agent's affair and no fault at all; a failing
 * call of the engine is judged by the control.
 * @param task the task's container, to which a failure is charged.
 * @param agentContainerId where the agent has been; it may be gone.
 * @returns what the rep has used; null where it cannot be said.
 * @throws RepFailed, container_interfered, engine_broken.
 */
export async function closeModelAccess(
  context: TrialContext,
  { sandbox, trial }: Started,
  agentContainerId: string,
  access: Access,
): Promise<Counts | null> {
  const charged = <T>(call: () => Promise<T>) => chargedTo(context, sandbox, trial, 'malformed_output', call);
  try {
    await charged(() => verifySameContainer(context, access.proxy));
    const counts = await charged(() => endProxy(context.engine, access));
    await charged(() => leaveBridge(context.engine, access, agentContainerId));
    return counts;
  } finally {
    await removeAccess(context.engine, access);
  }
}
