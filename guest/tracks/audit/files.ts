import { AUDITED_FOLDER } from '../../tasks/cache.ts';
import type { TaskFile } from '../../tasks/types.ts';
import type { TrialTask, Upload } from '../../trial/session.ts';
import { encodeCanonical } from '../../wire/canonical.ts';
import { ARTIFACT, CONTEXT, RESULT, WORKSPACE } from './paths.ts';
import type { Probe } from './probe.ts';

/**
 * What an agent is told. Not the task's name, its digest or the rep's number: a name may say what the label is,
 * and an agent that knows which rep it is can behave by it.
 */
export function contextJson(track: string, limits: TrialTask['limits'], probe: Probe): Buffer {
  return encodeCanonical({
    schema_version: 1,
    track,
    artifact: ARTIFACT,
    workspace: WORKSPACE,
    result: RESULT,
    probe: { path: probe.path, content: probe.content },
    budgets: { cpu_ms: limits.cpu_budget_ms, wall_ms: limits.wall_budget_ms },
  });
}

const inContainer = (path: string) => path.slice(1);

/** Everything a rep's container is given: the artifact, an empty workspace and this rep's own context. */
export function repFiles(audited: readonly TaskFile[], context: Buffer): Upload[] {
  return [
    ...audited.map(({ path, bytes, executable }) => ({
      path: `${inContainer(ARTIFACT)}/${path.slice(AUDITED_FOLDER.length)}`,
      bytes,
      executable,
    })),
    { path: inContainer(CONTEXT), bytes: context, executable: false },
    { path: `${inContainer(WORKSPACE)}/`, bytes: Buffer.alloc(0), executable: false },
  ];
}
