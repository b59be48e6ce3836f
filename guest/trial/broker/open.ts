import { chargedTo, RepFailed } from '../faults.ts';
import type { Sandbox } from '../sandbox.ts';
import type { TrialContext, TrialTask } from '../session.ts';
import { openBridge } from './bridge.ts';
import { BrokerServer } from './server.ts';

/** The broker of one rep. */
export interface Broker {
  /** Aborted with what ends the rep, or the run, when a call of the agent has shown it. */
  fault: AbortSignal;
  /** Nothing more is done for the agent. */
  stop(): void;
}

/**
 * Opens the way from an agent's sandbox to its task's container, and to no other.
 * @throws holder_not_running, engine_*.
 */
export async function openBroker(
  context: TrialContext,
  task: TrialTask,
  target: Sandbox,
  sandbox: Sandbox,
): Promise<Broker> {
  const fault = new AbortController();
  const server = new BrokerServer({
    engine: context.engine,
    clock: context.clock,
    target: { containerId: target.containerId, workdir: task.image.workdir },
    sandboxId: sandbox.containerId,
    judgeFailure: async (error) => {
      try {
        return await chargedTo(context, target, task, 'liveness', () => Promise.reject(error));
      } catch (failure) {
        if (failure instanceof RepFailed) return failure;
        throw failure;
      }
    },
    onFault: (error) => fault.abort(error),
  });
  await openBridge(context, sandbox.containerId, server);
  return { fault: fault.signal, stop: () => server.stop() };
}
