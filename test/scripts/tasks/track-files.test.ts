import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { trackKind } from '../../../guest/consensus/track-kind.ts';
import { LABEL_FILE } from '../../../guest/tasks/label.ts';
import { findTasks, readTask } from '../../../scripts/tasks/source.ts';
import { labelledTask, PLANTED_TASK } from '../../support/audit-tasks.ts';
import { type Files, PLAIN_TASK, writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

async function read(files: Files) {
  const folder = join(scratchFolder(), 'demo');
  await writeFiles(folder, files);
  return readTask('demo', folder);
}
const without = (files: Files, path: string): Files =>
  Object.fromEntries(Object.entries(files).filter(([name]) => name !== path));

describe('a task', () => {
  it('is of terminal-bench when it says nothing, and else of the track that it names', async () => {
    expect((await read(PLAIN_TASK)).config.track).toBe('terminal-bench');
    expect((await read(labelledTask('safe', 'packages'))).config.track).toBe('packages');
    expect((await read(PLANTED_TASK)).config.track).toBe('repositories');
  });

  const safe = labelledTask('safe');
  it.each<[string, Files, string]>([
    ['of an unknown track', { ...safe, 'task.toml': 'track = "chess"\n' }, 'track_unknown'],
    ['of a track that is no text', { ...safe, 'task.toml': 'track = 1\n' }, 'task_toml_invalid'],
    ['without a label', without(safe, LABEL_FILE), 'task_incomplete'],
    ['without an artifact', without(safe, 'environment/artifact/SKILL.md'), 'task_incomplete'],
    ['without a ground truth', without(PLANTED_TASK, 'tests/ground_truth.json'), 'task_incomplete'],
    ['of terminal-bench without test.sh', without(PLAIN_TASK, 'tests/test.sh'), 'task_incomplete'],
    ['without task.toml', without(safe, 'task.toml'), 'task_incomplete'],
    [
      'with a third class',
      { ...safe, [LABEL_FILE]: '{"schema_version":1,"class":"odd"}' },
      'ground_truth_invalid',
    ],
    [
      'with a label twice',
      { ...safe, [LABEL_FILE]: '{"class":"safe","class":"safe"}' },
      'ground_truth_invalid',
    ],
    [
      'with a label for a ground truth',
      { ...PLANTED_TASK, [LABEL_FILE]: safe[LABEL_FILE] ?? '' },
      'ground_truth_invalid',
    ],
    [
      'whose agent lives on',
      { ...safe, 'task.toml': 'track = "skills"\n[verifier]\nmode = "live"\n' },
      'task_unsupported',
    ],
  ])('%s is refused', async (_, files, code) => {
    expect(await rejectionCode(read(files))).toBe(code);
  });
});

it('the cases of this repository are of every track, and of both classes', async () => {
  const found = await findTasks([join(import.meta.dirname, '../../../task-cache')]);
  const classes = new Map<string, Set<string>>();
  for (const [name, directory] of found) {
    const { config, files } = await readTask(name, directory);
    const label = files.find(({ path }) => path === LABEL_FILE)?.bytes.toString() ?? '{}';
    const seen = classes.get(config.track) ?? new Set();
    classes.set(config.track, seen.add(String(JSON.parse(label).class)));
  }
  for (const [track, seen] of classes)
    if (trackKind(track) === 'behavioural')
      expect([track, [...seen].sort()]).toEqual([track, ['malicious', 'safe']]);
  expect([...classes.keys()].sort()).toEqual([
    'mcp_servers',
    'packages',
    'repositories',
    'skills',
    'terminal-bench',
  ]);
});
