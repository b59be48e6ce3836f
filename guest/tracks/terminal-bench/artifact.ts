import { carryArtifacts } from '../../trial/artifact-carry.ts';
import { chargedTo, verifyStillDead } from '../../trial/faults.ts';
import { createSandbox, type Sandbox } from '../../trial/sandbox.ts';
import type { TrialContext, TrialTask } from '../../trial/session.ts';

/** A stopped container that no agent has run in. */
export type Fresh = Awaited<ReturnType<typeof createSandbox>>;

/**
 * Verifier mode `artifact`: gives `verify` a fresh container of the task's image, with the dead agent's
 * artifacts beside it for entry.sh to put in place, and removes it after. The agent's own container, of no more
 * use, is removed before the tests run: its disk is theirs (spec/03).
 * @throws RepFailed, engine_broken, container_interfered; what `verify` throws.
 */
export async function inFreshContainer<T>(
  context: TrialContext,
  sandbox: Sandbox,
  trial: TrialTask,
  verify: (fresh: Fresh) => Promise<T>,
): Promise<T> {
  const { engine } = context;
  const charged = <R>(call: () => Promise<R>) => chargedTo(context, sandbox, trial, 'malformed_output', call);
  await charged(() => verifyStillDead(context, sandbox));
  const isolated: TrialTask = { ...trial, network: 'none' };
  const fresh = await charged(() => createSandbox(context, isolated, trial.taskId, 'verifier'));
  try {
    const order = { paths: trial.verifier.artifactPaths, storageBytes: trial.limits.storage_bytes };
    await charged(() => context.uploads(() => carryArtifacts(engine, sandbox, fresh, order)));
    await engine.remove(sandbox.containerId).catch(() => undefined);
    return await verify(fresh);
  } finally {
    // A late remove is left to the sweep (spec/02).
    await engine.remove(fresh.containerId).catch(() => undefined);
  }
}
