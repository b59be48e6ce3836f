import { execFileSync } from 'node:child_process';
import { link, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hashFile, listFolder, readRegularFile } from '../../../guest/tasks/folder.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

const list = (folder: string) => listFolder(folder, 'task demo', () => true);

describe('listFolder', () => {
  it('lists regular files by code point, with their size and executable bit', async () => {
    const folder = scratchFolder();
    await writeFiles(folder, { 'b.sh': 'xy', 'a/c': '', 'a-b': '123' });
    expect(await list(folder)).toEqual([
      { path: 'a-b', executable: false, sizeBytes: 3 },
      { path: 'a/c', executable: false, sizeBytes: 0 },
      { path: 'b.sh', executable: true, sizeBytes: 2 },
    ]);
  });

  it('passes over what does not count, whatever it is', async () => {
    const folder = scratchFolder();
    await writeFiles(folder, { keep: 'x', 'cache/y': '' });
    await symlink('keep', join(folder, 'cache/link'));
    const found = await listFolder(folder, 'task demo', (path) => !path.startsWith('cache/'));
    expect(found.map((file) => file.path)).toEqual(['keep']);
  });

  it('refuses a symbolic link, to a file or a folder', async () => {
    for (const target of ['x', 'd']) {
      const folder = scratchFolder();
      await writeFiles(folder, { x: '', 'd/y': '' });
      await symlink(target, join(folder, 'link'));
      expect(await rejectionCode(list(folder))).toBe('task_file_symlink');
    }
  });

  it('refuses a hard link', async () => {
    const folder = scratchFolder();
    await writeFiles(folder, { x: '' });
    await link(join(folder, 'x'), join(folder, 'y'));
    expect(await rejectionCode(list(folder))).toBe('task_file_hard_link');
  });

  it('refuses a FIFO without opening it', async () => {
    const folder = scratchFolder();
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(await rejectionCode(list(folder))).toBe('task_file_special');
  });

  it('refuses names that are unsafe, collide or are not UTF-8', async () => {
    const bad = scratchFolder();
    await writeFile(join(bad, 'a\x1bb'), '');
    expect(await rejectionCode(list(bad))).toBe('task_file_name');

    const colliding = scratchFolder();
    await writeFiles(colliding, { README: '', Readme: '' });
    expect(await rejectionCode(list(colliding))).toBe('task_file_collision');

    const latin = scratchFolder();
    await writeFile(Buffer.concat([Buffer.from(`${latin}/caf`), Buffer.from([0xe9])]), '');
    expect(await rejectionCode(list(latin))).toBe('task_file_name');
  });

  it('refuses folders nested too deep', async () => {
    const folder = scratchFolder();
    await mkdir(join(folder, 'd/'.repeat(40)), { recursive: true });
    expect(await rejectionCode(list(folder))).toBe('task_file_name');
  });
});

describe('hashFile and readRegularFile', () => {
  it('agree on a file larger than one read', async () => {
    const folder = scratchFolder();
    const text = 'abcdefg'.repeat(100_000);
    await writeFiles(folder, { x: text });
    expect(await hashFile(folder, 'x')).toBe(sha256Hex(text));
    expect((await readRegularFile(folder, 'x')).toString()).toBe(text);
  });

  it('follow no link and wait for no FIFO', async () => {
    const folder = scratchFolder();
    await writeFiles(folder, { x: '' });
    await symlink('x', join(folder, 'link'));
    await expect(hashFile(folder, 'link')).rejects.toMatchObject({ code: 'ELOOP' });
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(await rejectionCode(readRegularFile(folder, 'pipe'))).toBe('task_file_special');
  });
});
