import type { RunningExec } from '../engine/port.ts';
import type { FailureCode } from '../wire/score-record.ts';
import { chargedTo, RepFailed, verifySameContainer } from './faults.ts';
import { judge, type Reading } from './judge.ts';
import type { Ready } from './prepare.ts';
import type { Sandbox } from './sandbox.ts';
import type { TrialContext, TrialTask } from './session.ts';
import { Watch } from './watch.ts';

/** How long the streams get to drain. */
const DRAIN_MS = 250;

export interface AgentLife {
  reading: Reading;
  failure: FailureCode | null;
  /** False when a container was ended from inside: of that one there is nothing left to kill. */
  running: boolean;
  /** What the agent printed, bounded; to be asked for after the kill, when nothing holds the streams. */
  output: () => Promise<AgentOutput | null>;
}

export type AgentOutput = Awaited<RunningExec['output']>;

/** What was captured; a process we did not kill (live) may hold the streams open. */
async function drained(context: TrialContext, exec: RunningExec): Promise<AgentOutput | null> {
  await Promise.race([exec.output.catch(() => null), context.clock.sleep(DRAIN_MS)]);
  exec.detach();
  return exec.output.catch(() => null);
}

/**
 * The agent's life: its exec is started and watched against the budgets until its end. From the call of
 * `startExec` on the agent may have run, so it is never started again, and a failing call is judged by the
 * control (spec/02).
 */
export async function runAgent(context: TrialContext, ready: Ready): Promise<AgentLife> {
  const { execId, task, own } = ready;
  const { sandbox, trial } = own ?? task;
  const places = own === null ? [task] : [own, task];
  const charged = places.map((one) => ({ sandbox: one.sandbox, limits: one.trial.limits }));
  const signal = own === null ? context.signal : AbortSignal.any([context.signal, own.broker.fault]);
  const watch = new Watch({ ...context, signal }, charged, trial.limits);
  let output: AgentLife['output'] = async () => null;
  try {
    signal.throwIfAborted();
    const exec = await chargedTo(context, sandbox, trial, 'agent_start', () =>
      context.engine.startExec(execId),
    );
    output = () => drained(context, exec);
    const streams = exec.output.then(
      () => undefined,
      () => undefined,
    );
    const seen = await chargedTo(context, sandbox, trial, 'liveness', () => watch.untilEnd(execId, streams));
    if (seen.cause === 'container_ended') {
      for (const one of places)
        await chargedTo(context, one.sandbox, one.trial, 'liveness', () =>
          verifySameContainer(context, one.sandbox),
        );
    }
    return {
      reading: seen,
      failure: judge(seen, trial.limits),
      running: seen.cause !== 'container_ended',
      output,
    };
  } catch (error) {
    if (!(error instanceof RepFailed)) throw error;
    return { reading: watch.reading(), failure: error.failure, running: true, output };
  } finally {
    own?.broker.stop();
  }
}

/**
 * Kills every process of a rep whose agent has ended, after making sure that it is still the container
 * whose holder we started.
 * @throws RepFailed: `liveness` when it was ended from inside, `malformed_output` when the engine cannot kill
 * it; container_interfered, engine_broken.
 */
export async function killSandbox(context: TrialContext, sandbox: Sandbox, task: TrialTask): Promise<void> {
  const runs = await chargedTo(context, sandbox, task, 'liveness', () =>
    verifySameContainer(context, sandbox),
  );
  if (!runs) throw new RepFailed('liveness');
  await chargedTo(context, sandbox, task, 'malformed_output', () => context.engine.kill(sandbox.containerId));
}
