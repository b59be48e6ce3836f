import type { z } from 'zod';
import { type TrackKind, trackKind } from '../../guest/consensus/track-kind.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { AUDITED_FOLDER } from '../../guest/tasks/cache.ts';
import { LABEL_FILE, labelSchema } from '../../guest/tasks/label.ts';
import type { TaskFile } from '../../guest/tasks/types.ts';
import { GROUND_TRUTH_FILE, groundTruthSchema } from '../../guest/tracks/repositories/ground-truth.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import type { SourceTask } from './source.ts';

const LIMITS = { maxBytes: 1024 * 1024, maxDepth: 8 };
const COMMON = ['task.toml', 'instruction.md', 'environment/Dockerfile'];
const NEEDED: Readonly<Record<TrackKind, readonly string[]>> = {
  behavioural: [...COMMON, LABEL_FILE],
  repositories: [...COMMON, GROUND_TRUTH_FILE],
  'terminal-bench': [...COMMON, 'tests/test.sh'],
};
const SCHEMAS: Readonly<Record<'behavioural' | 'repositories', z.ZodType>> = {
  behavioural: labelSchema,
  repositories: groundTruthSchema,
};

function verifyHidden(kind: 'behavioural' | 'repositories', file: TaskFile, where: string): void {
  try {
    parseSchema(SCHEMAS[kind], parseForeignJson(file.bytes, LIMITS), file.path);
  } catch (cause) {
    if (!(cause instanceof EvaluatorError)) throw cause;
    throw new EvaluatorError('ground_truth_invalid', `${where}: ${cause.message}`, { cause });
  }
}

/**
 * A task has what its track is judged by; an audit's has an artifact and says what is hidden in it.
 * @throws track_unknown, task_incomplete, ground_truth_invalid, task_unsupported.
 */
export function verifyTrackFiles({ taskId, files, config }: Omit<SourceTask, 'directory'>): void {
  const where = `task ${taskId}`;
  const kind = trackKind(config.track);
  const byPath = new Map(files.map((file) => [file.path, file]));
  const absent = NEEDED[kind].find((path) => !byPath.has(path));
  if (absent !== undefined) throw new EvaluatorError('task_incomplete', `${where}: ${absent} is missing`);
  if (kind === 'terminal-bench') return;
  if (!files.some(({ path }) => path.startsWith(AUDITED_FOLDER)))
    throw new EvaluatorError('task_incomplete', `${where}: nothing to audit below ${AUDITED_FOLDER}`);
  if (config.verifier.mode !== 'restart')
    throw new EvaluatorError('task_unsupported', `${where}: verifier.mode is of terminal-bench alone`);
  const hidden = byPath.get(kind === 'behavioural' ? LABEL_FILE : GROUND_TRUTH_FILE);
  if (hidden) verifyHidden(kind, hidden, where);
}
