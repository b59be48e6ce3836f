import { EvaluatorError } from '../errors.ts';
import { createSandbox, SHELL, startHolder } from './sandbox.ts';
import type { TrialContext, TrialTask } from './session.ts';

/** Many times what a control takes: an engine that needs longer hangs. */
const CONTROL_WITHIN_MS = 30_000;

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
    const late = context.clock.sleep(CONTROL_WITHIN_MS).then(() => {
      throw new Error(`no end within ${CONTROL_WITHIN_MS} ms`);
    });
    const control = runControl(context, task);
    // The loser of the race may still fail; that must not become an unhandled rejection.
    for (const one of [late, control]) one.catch(() => undefined);
    await Promise.race([control, late]);
  } catch (cause) {
    throw new EvaluatorError(
      'engine_broken',
      `the engine fails a control container too (${(cause as Error).message}); the run ends without a RESULT`,
      { cause },
    );
  }
}
