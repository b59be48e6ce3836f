import pLimit from 'p-limit';
import type { Wheel } from '../agent/dependencies/wheel.ts';
import { isEvaluatorError } from '../errors.ts';
import { verifyVerifierPath } from '../tracks/terminal-bench/verify.ts';
import { withStartRetries } from '../trial/faults.ts';
import { labelsOf } from '../trial/labels.ts';
import { networkName } from '../trial/sandbox.ts';
import type { TrialContext, TrialTask } from '../trial/session.ts';
import { createToolsVolume } from '../trial/tools-volume.ts';

const CONTROLS_AT_ONCE = 2;

/** The run's own bridge. Its name is of this session alone: a conflict is an earlier attempt's success. */
export async function openNetwork(context: TrialContext): Promise<void> {
  const labels = labelsOf(context.session, context.runId, 'trial', 'network');
  await context.engine.createNetwork(networkName(context), labels).catch((error) => {
    if (!isEvaluatorError(error, 'engine_conflict')) throw error;
  });
}

/**
 * What all trials of a run share is made on the engine, and one trivial verification per image shows that
 * test.sh can be run, and its reward read, before any agent starts. A call that fails is made again, bounded
 * and counted (spec/02).
 * @throws engine_*, verifier_broken.
 */
export async function prepareEngine(
  base: Omit<TrialContext, 'toolsVolume'>,
  toolchainTar: string,
  tasks: readonly [TrialTask, ...TrialTask[]],
  wheels: readonly Wheel[],
): Promise<TrialContext> {
  const [{ image }] = tasks;
  const { value: toolsVolume } = await withStartRetries(base, () =>
    createToolsVolume(base, toolchainTar, image.id, wheels),
  );
  const context = { ...base, toolsVolume };
  if (tasks.some((task) => task.network !== 'none')) await withStartRetries(base, () => openNetwork(context));
  const limit = pLimit(CONTROLS_AT_ONCE);
  const byImage = new Map(tasks.map((task) => [task.image.id, task]));
  await Promise.all(
    [...byImage.values()].map((task) =>
      limit(() => withStartRetries(base, () => verifyVerifierPath(context, task))),
    ),
  );
  return context;
}
