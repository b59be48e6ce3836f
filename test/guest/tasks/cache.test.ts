import { execFileSync } from 'node:child_process';
import { appendFile, link, mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCache } from '../../../guest/tasks/cache.ts';
import { encodeManifest } from '../../../guest/tasks/manifest.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { labelledTask } from '../../support/audit-tasks.ts';
import { manifestTask, PLAIN_TASK, writeCache, writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';

const OTHER = { ...PLAIN_TASK, 'tests/data/x.txt': 'x', 'environment/y.txt': 'y', 'README.md': 'z' };

async function validCache(): Promise<string> {
  const folder = join(scratchFolder(), 'cache');
  await writeCache(folder, { alpha: PLAIN_TASK, beta: OTHER }, 'the tools');
  return folder;
}

describe('openCache', () => {
  it('opens what was baked', async () => {
    const folder = await validCache();
    const cache = await openCache(folder);
    expect(cache.taskIds).toEqual(['alpha', 'beta']);
    expect(cache.toolchainDigest).toBe(sha256Hex('the tools'));
    expect(cache.toolchainPath).toBe(join(folder, 'toolchain.tar'));
    expect(cache.task('alpha')).toMatchObject({
      taskId: 'alpha',
      taskDigest: manifestTask('alpha', PLAIN_TASK).task_digest,
      config: { agent: { timeoutSec: 60 } },
      instruction: Buffer.from(PLAIN_TASK['instruction.md'] ?? ''),
      imageBase: 'stand-in',
      verifierMode: 'restart',
    });
  });

  it('gives the tests, and only them', async () => {
    const cache = await openCache(await validCache());
    expect(await cache.tests('beta')).toEqual([
      { path: 'tests/data/x.txt', bytes: Buffer.from('x'), executable: false },
      { path: 'tests/test.sh', bytes: Buffer.from(PLAIN_TASK['tests/test.sh'] ?? ''), executable: true },
    ]);
  });

  it('works without tools', async () => {
    const folder = scratchFolder();
    await writeCache(folder, { alpha: PLAIN_TASK });
    expect(await openCache(folder)).toMatchObject({ toolchainDigest: null, toolchainPath: null });
  });

  it('knows no other task', async () => {
    const cache = await openCache(await validCache());
    expect(codeOf(() => cache.task('gamma'))).toBe('task_unknown');
  });

  it.each<[string, string, (folder: string) => Promise<unknown>]>([
    ['no manifest', 'cache_unreadable', (f) => unlink(join(f, 'manifest.json'))],
    [
      'a manifest that is a link',
      'cache_unreadable',
      async (f) => {
        await rename(join(f, 'manifest.json'), join(f, 'alpha/m'));
        await symlink('alpha/m', join(f, 'manifest.json'));
      },
    ],
    [
      'a manifest that is not canonical',
      'json_not_canonical',
      (f) => appendFile(join(f, 'manifest.json'), '\n'),
    ],
    ['a missing task', 'cache_task_missing', (f) => rm(join(f, 'beta'), { recursive: true })],
    [
      'a task that is a file',
      'cache_task_missing',
      async (f) => {
        await rm(join(f, 'beta'), { recursive: true });
        await writeFile(join(f, 'beta'), '');
      },
    ],
    ['an extra task', 'cache_file_extra', (f) => writeFiles(join(f, 'gamma'), PLAIN_TASK)],
    ['an extra file at the top', 'cache_file_extra', (f) => writeFile(join(f, 'notes'), '')],
    ['an extra test', 'cache_file_extra', (f) => writeFile(join(f, 'beta/tests/more'), '')],
    ['an extra public file', 'cache_file_extra', (f) => writeFile(join(f, 'beta/environment/more'), '')],
    ['a file that an editor left', 'cache_file_extra', (f) => writeFile(join(f, 'beta/tests/test.sh~'), '')],
    ['a file outside the package', 'cache_file_extra', (f) => writeFile(join(f, 'beta/.gitignore'), '')],
    ['a solution', 'cache_file_extra', (f) => writeFiles(join(f, 'beta'), { 'solution/solve.sh': '' })],
    ['a missing test', 'cache_file_missing', (f) => unlink(join(f, 'beta/tests/data/x.txt'))],
    ['a missing public file', 'cache_file_missing', (f) => unlink(join(f, 'beta/README.md'))],
    ['a changed test', 'cache_file_changed', (f) => writeFile(join(f, 'beta/tests/data/x.txt'), 'y')],
    ['a changed instruction', 'cache_file_changed', (f) => writeFile(join(f, 'beta/instruction.md'), 'y')],
    [
      'a renamed file',
      'cache_file_changed',
      (f) => rename(join(f, 'beta/environment/y.txt'), join(f, 'beta/environment/z.txt')),
    ],
    [
      'two files that changed places',
      'cache_file_changed',
      async (f) => {
        await writeFile(join(f, 'beta/environment/y.txt'), 'x');
        await writeFile(join(f, 'beta/tests/data/x.txt'), 'y');
      },
    ],
    [
      'a symbolic link to the same content',
      'task_file_symlink',
      async (f) => {
        await unlink(join(f, 'beta/environment/y.txt'));
        await writeFile(join(f, 'beta/tests/data/y.txt'), 'y');
        await symlink('../tests/data/y.txt', join(f, 'beta/environment/y.txt'));
      },
    ],
    [
      'a task folder that is a link',
      'task_file_symlink',
      async (f) => {
        await rename(join(f, 'beta'), `${f}-beta`);
        await symlink(`${f}-beta`, join(f, 'beta'));
      },
    ],
    ['a hard link', 'task_file_hard_link', (f) => link(join(f, 'beta/tests/data/x.txt'), `${f}-linked`)],
    ['a FIFO', 'task_file_special', async (f) => execFileSync('mkfifo', [join(f, 'beta/tests/pipe')])],
    ['changed tools', 'cache_toolchain_changed', (f) => appendFile(join(f, 'toolchain.tar'), 'x')],
    ['missing tools', 'cache_toolchain_missing', (f) => unlink(join(f, 'toolchain.tar'))],
  ])('refuses %s', async (_, code, damage) => {
    const folder = await validCache();
    await damage(folder);
    expect(await rejectionCode(openCache(folder))).toBe(code);
  });

  it('refuses a wrong digest and names the task', async () => {
    const folder = scratchFolder();
    await writeFiles(join(folder, 'alpha'), PLAIN_TASK);
    const tasks = [{ ...manifestTask('alpha', PLAIN_TASK), task_digest: 'f'.repeat(64) }];
    const manifest = encodeManifest({ schema_version: 1, cache_id: null, toolchain_digest: null, tasks });
    await writeFile(join(folder, 'manifest.json'), manifest);
    await expect(openCache(folder)).rejects.toMatchObject({
      code: 'cache_file_changed',
      message: expect.stringContaining('task alpha'),
    });
  });

  it('refuses a malformed task.toml even under a right digest', async () => {
    const folder = scratchFolder();
    await writeCache(folder, { alpha: { ...PLAIN_TASK, 'task.toml': '[agent]\ntimeout_sec = "long"\n' } });
    expect(await rejectionCode(openCache(folder))).toBe('task_toml_invalid');
  });

  it('gives what is to be audited, and no more when it has changed', async () => {
    const folder = join(scratchFolder(), 'cache');
    await writeCache(folder, { skill: labelledTask('safe') });
    const cache = await openCache(folder);
    expect(cache.task('skill').track).toBe('skills');
    expect(await cache.audited('skill')).toEqual([
      { path: 'environment/artifact/SKILL.md', bytes: Buffer.from('# Adds\n'), executable: false },
    ]);
    await appendFile(join(folder, 'skill/environment/artifact/SKILL.md'), 'more');
    expect(await rejectionCode(cache.audited('skill'))).toBe('cache_file_changed');
  });

  it('reads tests that changed after it was opened no more', async () => {
    const folder = await validCache();
    const cache = await openCache(folder);
    await writeFile(join(folder, 'beta/tests/data/x.txt'), 'y');
    expect(await rejectionCode(cache.tests('beta'))).toBe('cache_file_changed');
    await unlink(join(folder, 'beta/tests/data/x.txt'));
    expect(await rejectionCode(cache.tests('beta'))).toBe('cache_file_missing');
    await mkdir(join(folder, 'beta/tests/data/x.txt'));
    expect(await rejectionCode(cache.tests('beta'))).toBe('cache_file_missing');
  });

  it('checks a sealed blob by its hash, and gives no tests of it', async () => {
    const folder = scratchFolder();
    const { 'tests/test.sh': _, ...publicFiles } = PLAIN_TASK;
    await writeFiles(join(folder, 'alpha'), publicFiles);
    await writeFiles(folder, { 'sealed/alpha.sealed': 'blob' });
    const entry = {
      ...manifestTask('alpha', PLAIN_TASK),
      file_count: 3,
      sealed: { sha256: sha256Hex('blob'), size: 4 },
    };
    const manifest = {
      schema_version: 1 as const,
      cache_id: 'c'.repeat(64),
      toolchain_digest: null,
      tasks: [entry],
    };
    await writeFile(join(folder, 'manifest.json'), encodeManifest(manifest));
    const cache = await openCache(folder);
    expect(await rejectionCode(cache.tests('alpha'))).toBe('cache_sealed');

    await writeFiles(join(folder, 'alpha'), { 'instruction.md': 'another' });
    expect(await rejectionCode(openCache(folder))).toBe('cache_file_changed');
    await writeFiles(join(folder, 'alpha'), publicFiles);
    await writeFiles(join(folder, 'alpha'), { 'tests/test.sh': '' });
    expect(await rejectionCode(openCache(folder))).toBe('cache_file_extra');
    await rm(join(folder, 'alpha/tests'), { recursive: true });

    await writeFiles(folder, { 'sealed/beta.sealed': 'blob' });
    expect(await rejectionCode(openCache(folder))).toBe('cache_file_extra');
    await unlink(join(folder, 'sealed/beta.sealed'));
    await writeFiles(folder, { 'sealed/alpha.sealed': 'blub' });
    expect(await rejectionCode(openCache(folder))).toBe('cache_file_changed');
  });
});
