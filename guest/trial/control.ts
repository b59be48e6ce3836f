import { EvaluatorError } from '../errors.ts';
import { createSandbox, SHELL, startHolder } from './sandbox.ts';
import type { TrialContext, TrialTask } from './session.ts';

async function runControl(context: TrialContext, task: TrialTask): Promise<void> {
  const created = await createSandbox(context, { ...task, network: 'none' }, 'control', 'control');
  try {
    const sandbox = await startHolder(context, created, task);
    const execId = await context.engine.createExec(sandbox.containerId, {
      command: [...SHELL, '-c', 'exit 7'],
      env: [],
      workingDir: '/',
      user: '0',
    });
    const exec = await context.engine.startExec(execId);
    await exec.output;
    const state = await context.engine.execState(execId);
    if (state.running || state.exitCode !== 7) throw new Error(`control exec ended with ${state.exitCode}`);
    sandbox.cgroup.read();
  } finally {
    await context.engine.remove(created.containerId);
  }
}

/**
 * Is the engine itself broken? A container of our own, from the same image, is created, started, entered,
 * read and removed (spec/02, the control container).
 * @throws engine_broken: the run aborts without a RESULT.
 */
export async function verifyEngine(context: TrialContext, task: TrialTask): Promise<void> {
  try {
    await runControl(context, task);
  } catch (cause) {
    throw new EvaluatorError(
      'engine_broken',
      `the engine fails a control container too (${(cause as Error).message}); the run ends without a RESULT`,
      { cause },
    );
  }
}
