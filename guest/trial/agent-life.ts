import type { RunningExec } from '../engine/port.ts';
import type { FailureCode } from '../wire/score-record.ts';
import { chargedTo, RepFailed, verifySameContainer } from './faults.ts';
import { judge, type Reading } from './judge.ts';
import type { Sandbox } from './sandbox.ts';
import type { TrialAgent, TrialContext, TrialTask } from './session.ts';
import { Watch } from './watch.ts';

/** How long the streams get to drain. */
const DRAIN_MS = 250;

export interface AgentLife {
  reading: Reading;
  failure: FailureCode | null;
  /** False when the container was ended from inside: there is nothing left to kill. */
  running: boolean;
  /** What the agent printed, bounded; to be asked for after the kill, when nothing holds the streams. */
  output: () => Promise<AgentOutput | null>;
}

export type AgentOutput = Awaited<RunningExec['output']>;

/** Creates the agent's exec; a failure here started nothing and may be retried (spec/02). */
export function createAgentExec(
  context: TrialContext,
  sandbox: Sandbox,
  task: TrialTask,
  agent: TrialAgent,
): Promise<string> {
  return context.engine.createExec(sandbox.containerId, {
    command: agent.command,
    env: [
      'TASK_INSTRUCTION_FILE=/task/instruction.md',
      `TASK_WORKDIR=${task.image.workdir}`,
      'AGENT_LOG_DIR=/logs/agent',
      ...agent.env,
    ],
    workingDir: task.image.workdir,
    user: '0',
  });
}

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
export async function runAgent(
  context: TrialContext,
  sandbox: Sandbox,
  task: TrialTask,
  execId: string,
): Promise<AgentLife> {
  const watch = new Watch(context, sandbox, task.limits);
  let output: AgentLife['output'] = async () => null;
  try {
    context.signal.throwIfAborted();
    const exec = await chargedTo(context, sandbox, task, 'agent_start', () =>
      context.engine.startExec(execId),
    );
    output = () => drained(context, exec);
    const streams = exec.output.then(
      () => undefined,
      () => undefined,
    );
    const seen = await chargedTo(context, sandbox, task, 'liveness', () => watch.untilEnd(execId, streams));
    if (seen.cause === 'container_ended')
      await chargedTo(context, sandbox, task, 'liveness', () => verifySameContainer(context, sandbox));
    return {
      reading: seen,
      failure: judge(seen, task.limits),
      running: seen.cause !== 'container_ended',
      output,
    };
  } catch (error) {
    if (!(error instanceof RepFailed)) throw error;
    return { reading: watch.reading(), failure: error.failure, running: true, output };
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
