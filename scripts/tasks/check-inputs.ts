import { readSolution } from '../../guest/stages/solutions.ts';
import type { ManifestTask } from '../../guest/tasks/manifest.ts';
import type { CachedTask } from '../../guest/tasks/types.ts';
import type { TrialAgent } from '../../guest/trial/session.ts';
import { type BuiltinAgent, builtinAgent } from '../agent/builtin.ts';
import type { LifeLog } from './check-life.ts';
import type { SourceTask } from './source.ts';

/** Told of a rep's output. */
export type OnLog = (taskId: string, agent: BuiltinAgent, rep: number, log: LifeLog) => Promise<void>;

export interface CheckedTask {
  source: SourceTask;
  entry: ManifestTask;
}

export async function agentOf(name: BuiltinAgent, source: SourceTask): Promise<TrialAgent> {
  const { manifest, files } = await builtinAgent(name);
  const own = files.map(({ path, bytes }) => ({ path: `agent/${path}`, bytes, executable: true }));
  const { taskId, directory } = source;
  const solution =
    name === 'oracle' ? await readSolution(directory.slice(0, -taskId.length - 1), taskId) : [];
  return { kind: 'container', command: manifest.command, env: [], files: [...own, ...solution] };
}

/** The task as a guest would read it from a cache. */
export function cachedTask({ source, entry }: CheckedTask): CachedTask {
  const instruction = source.files.find(({ path }) => path === 'instruction.md')?.bytes ?? Buffer.alloc(0);
  return {
    taskId: entry.task_id,
    taskDigest: entry.task_digest,
    track: entry.track,
    config: source.config,
    instruction,
    image: entry.image,
    imageSource: entry.image_source,
    imageBase: entry.base,
    evidence: entry.evidence,
    verifierMode: entry.verifier,
    artifactPaths: entry.artifact_paths,
  };
}
