import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { digestFiles, sourceDigest } from '../../../guest/tasks/source-digest.ts';
import { findTasks, readTask } from '../../../scripts/tasks/source.ts';
import { type Files, PLAIN_TASK, writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

async function taskFolder(files: Files): Promise<string> {
  const folder = join(scratchFolder(), 'demo');
  await writeFiles(folder, files);
  return folder;
}

const read = async (files: Files) => readTask('demo', await taskFolder(files));

describe('findTasks', () => {
  it('finds the tasks of folders, and folders that are one', async () => {
    const folder = scratchFolder();
    await writeFiles(join(folder, 'set/beta'), PLAIN_TASK);
    await writeFiles(join(folder, 'set/alpha'), PLAIN_TASK);
    await writeFiles(join(folder, 'set'), { 'README.md': '', 'docs/x': '' });
    await writeFiles(join(folder, 'gamma'), PLAIN_TASK);
    const found = await findTasks([join(folder, 'gamma'), join(folder, 'set'), join(folder, 'gamma')]);
    expect([...found.keys()]).toEqual(['alpha', 'beta', 'gamma']);
    expect(found.get('alpha')).toBe(join(folder, 'set/alpha'));
  });

  it('refuses two tasks of one name, an empty folder, none, and a name that is none', async () => {
    const folder = scratchFolder();
    await writeFiles(join(folder, 'a/demo'), PLAIN_TASK);
    await writeFiles(join(folder, 'b/demo'), PLAIN_TASK);
    await writeFiles(join(folder, 'c/de mo'), PLAIN_TASK);
    await writeFiles(join(folder, 'd'), { x: '' });
    const find = (...names: string[]) => rejectionCode(findTasks(names.map((name) => join(folder, name))));
    expect(await find('a', 'b')).toBe('task_duplicate');
    expect(await find('c')).toBe('task_file_name');
    expect(await find('d')).toBe('task_unknown');
    expect(await find('absent')).toBe('task_unknown');
  });

  it.each(['manifest.json', 'toolchain.tar', 'sealed'])(
    'refuses the name of what lies beside tasks: %s',
    async (name) => {
      const folder = scratchFolder();
      await writeFiles(join(folder, name), PLAIN_TASK);
      expect(await rejectionCode(findTasks([folder]))).toBe('task_unsupported');
    },
  );
});

describe('readTask', () => {
  it('reads the package, its solution too, and nothing else', async () => {
    const junk = { 'notes.txt': 'x', '.git/config': 'x', 'tests/__pycache__/a.pyc': 'x', 'tests/x.swp': 'x' };
    const task = await read({ ...PLAIN_TASK, ...junk, 'solution/solve.sh': 'exit 0\n' });
    expect(task.files.map((file) => file.path)).toEqual([
      'environment/Dockerfile',
      'instruction.md',
      'solution/solve.sh',
      'task.toml',
      'tests/test.sh',
    ]);
    expect(task.files.find((file) => file.path === 'tests/test.sh')?.executable).toBe(true);
    expect(task.config.agent.timeoutSec).toBe(60);
  });

  it("filters by the task's own .gitignore in place of the usual one", async () => {
    const files = { ...PLAIN_TASK, 'tests/a.pyc': 'x', 'tests/b.tmp': 'x' };
    const paths = (await read({ ...files, '.gitignore': '*.tmp\n' })).files.map((file) => file.path);
    expect(paths).toContain('tests/a.pyc');
    expect(paths).not.toContain('tests/b.tmp');
  });

  it('digests what a baked copy digests', async () => {
    const task = await read(PLAIN_TASK);
    const plain = Object.entries(PLAIN_TASK).map(([path, text]) => ({
      path,
      bytes: Buffer.from(text),
      executable: false,
    }));
    expect(sourceDigest(digestFiles(task.files))).toBe(sourceDigest(digestFiles(plain)));
  });

  it.each(Object.keys(PLAIN_TASK))('misses %s', async (path) => {
    const { [path]: _, ...rest } = PLAIN_TASK;
    expect(await rejectionCode(read(rest as Files))).toBe('task_incomplete');
  });

  it.each(['steps/1/instruction.md', 'environment/docker-compose.yaml', 'environment/compose.yml'])(
    'refuses a task with %s, which would not be run as its author meant',
    async (path) => {
      expect(await rejectionCode(read({ ...PLAIN_TASK, [path]: '' }))).toBe('task_unsupported');
    },
  );

  it('refuses links inside the package only', async () => {
    const folder = await taskFolder(PLAIN_TASK);
    await symlink('task.toml', join(folder, 'link'));
    await expect(readTask('demo', folder)).resolves.toBeDefined();
    await symlink('../task.toml', join(folder, 'tests/link'));
    expect(await rejectionCode(readTask('demo', folder))).toBe('task_file_symlink');
  });

  it('names the key of a malformed task.toml', async () => {
    await expect(read({ ...PLAIN_TASK, 'task.toml': '[environment]\ncpus = "2"\n' })).rejects.toMatchObject({
      code: 'task_toml_invalid',
      message: expect.stringMatching(/demo\/task\.toml: environment\.cpus: .*number/),
    });
  });
});

describe('the tasks of this repository', () => {
  it('are complete, small and solved', async () => {
    const found = await findTasks([join(import.meta.dirname, '../../../task-cache')]);
    expect(found.size).toBeGreaterThanOrEqual(6);
    for (const [name, directory] of found) {
      const task = await readTask(name, directory);
      expect(task.files.map((file) => file.path)).toContain('solution/solve.sh');
      expect(task.config.environment.memoryMb).toBeLessThanOrEqual(2048);
      expect(task.config.agent.timeoutSec).toBeLessThanOrEqual(60);
    }
  });
});
