import { appendFile, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCache } from '../../../guest/tasks/cache.ts';
import { encodeManifest, type ManifestTask, parseManifest } from '../../../guest/tasks/manifest.ts';
import { sealTests } from '../../../guest/tasks/seal.ts';
import { digestFiles, isPublicFile, publicDigest } from '../../../guest/tasks/source-digest.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { PLAIN_TASK, writeCache, writeFiles } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { CACHE_ID, labelled, saltedTask, toTaskFiles, writeSealedCache } from '../../support/sealed-cache.ts';
import { rejectionCode } from '../../support/throws.ts';

const CANARY = 'a-line-that-only-the-hidden-test-has';
const ALPHA = { ...PLAIN_TASK, 'tests/test.sh': `#!/bin/sh\n# ${CANARY}\n`, 'tests/data/x.txt': 'x' };
const BETA = { ...PLAIN_TASK, 'instruction.md': 'Another.\n' };

async function sealedCache() {
  const folder = join(scratchFolder(), 'cache');
  const keys = await writeSealedCache(folder, { alpha: ALPHA, beta: BETA });
  const key = (taskId: string) => keys.get(taskId) ?? Buffer.alloc(0);
  return { folder, key };
}

/** Changes entries of the manifest, as one would who can also publish its digest. */
async function editManifest(folder: string, edit: (tasks: ManifestTask[]) => void): Promise<void> {
  const path = join(folder, 'manifest.json');
  const manifest = parseManifest(await readFile(path));
  edit(manifest.tasks);
  await writeFile(path, encodeManifest(manifest));
}

const blob = (folder: string, taskId: string) => join(folder, 'sealed', `${taskId}.sealed`);

async function swapBlobs(folder: string): Promise<void> {
  await rename(blob(folder, 'alpha'), join(folder, 'swap'));
  await rename(blob(folder, 'beta'), blob(folder, 'alpha'));
  await rename(join(folder, 'swap'), blob(folder, 'beta'));
}

describe('a sealed cache', () => {
  it('opens without a key and gives its tests for one, without the salt', async () => {
    const { folder, key } = await sealedCache();
    const cache = await openCache(folder);
    expect(cache.cacheId).toBe(CACHE_ID);
    expect(await cache.unseal('alpha', key('alpha'))).toEqual([
      { path: 'tests/data/x.txt', bytes: Buffer.from('x'), executable: false },
      { path: 'tests/test.sh', bytes: Buffer.from(ALPHA['tests/test.sh']), executable: true },
    ]);
    expect(await rejectionCode(cache.tests('alpha'))).toBe('cache_sealed');
  });

  it('holds no byte of a hidden test in plain', async () => {
    const { folder } = await sealedCache();
    const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((e) => e.isFile());
    expect(files.length).toBeGreaterThan(6);
    for (const { parentPath, name } of files) {
      expect(`${parentPath}/${name}`).not.toContain('/tests/');
      expect((await readFile(join(parentPath, name))).includes(CANARY)).toBe(false);
    }
  });

  it.each<[string, string, (folder: string) => Promise<unknown>]>([
    [
      'a blob with a changed byte',
      'cache_file_changed',
      (f) => writeFile(blob(f, 'alpha'), Buffer.alloc(8220)),
    ],
    ['a longer blob', 'cache_file_changed', (f) => appendFile(blob(f, 'alpha'), 'x')],
    ['a missing blob', 'cache_file_missing', (f) => unlink(blob(f, 'alpha'))],
    ['swapped blobs', 'cache_file_changed', swapBlobs],
    ['a blob too many', 'cache_file_extra', (f) => writeFile(blob(f, 'gamma'), 'x')],
    ['a test in plain', 'cache_file_extra', (f) => writeFiles(join(f, 'alpha'), { 'tests/test.sh': 'x' })],
    [
      'a manifest with another size',
      'cache_file_changed',
      (f) =>
        editManifest(f, ([alpha]) => {
          if (alpha?.sealed) alpha.sealed.size += 1;
        }),
    ],
    [
      'a manifest with an absurd size',
      'schema_invalid',
      async (f) => {
        const text = await readFile(join(f, 'manifest.json'), 'utf8');
        await writeFile(join(f, 'manifest.json'), text.replace(/"size":[0-9]+/, '"size":9000000000000000'));
      },
    ],
  ])('is refused before any key with %s', async (_, code, damage) => {
    const { folder } = await sealedCache();
    await damage(folder);
    expect(await rejectionCode(openCache(folder))).toBe(code);
  });

  it.each<[string, string, (folder: string) => Promise<unknown>]>([
    ['a blob that changed', 'cache_file_changed', (f) => appendFile(blob(f, 'alpha'), 'x')],
    ['a blob that went away', 'cache_file_missing', (f) => rm(blob(f, 'alpha'))],
    ['blobs that were swapped', 'cache_file_changed', swapBlobs],
  ])('notices after it was opened: %s', async (_, code, damage) => {
    const { folder, key } = await sealedCache();
    const cache = await openCache(folder);
    await damage(folder);
    expect(await rejectionCode(cache.unseal('alpha', key('alpha')))).toBe(code);
  });

  it('does not open with the key of another task', async () => {
    const { folder, key } = await sealedCache();
    const cache = await openCache(folder);
    expect(await rejectionCode(cache.unseal('alpha', key('beta')))).toBe('sealed_unopenable');
    expect(await rejectionCode(cache.unseal('gamma', key('beta')))).toBe('task_unknown');
  });

  it('does not open swapped blobs under a manifest that was edited to fit', async () => {
    const { folder, key } = await sealedCache();
    await swapBlobs(folder);
    await editManifest(folder, ([alpha, beta]) => {
      if (alpha && beta) [alpha.sealed, beta.sealed] = [beta.sealed, alpha.sealed];
    });
    const cache = await openCache(folder);
    for (const name of ['alpha', 'beta'])
      expect(await rejectionCode(cache.unseal('alpha', key(name)))).toBe('sealed_unopenable');
  });

  it('does not open under another task digest', async () => {
    const { folder, key } = await sealedCache();
    await editManifest(folder, ([alpha]) => {
      if (alpha) alpha.task_digest = 'ab'.repeat(32);
    });
    const cache = await openCache(folder);
    expect(await rejectionCode(cache.unseal('alpha', key('alpha')))).toBe('sealed_unopenable');
  });

  it('notices a public file that was edited together with its digest', async () => {
    const { folder, key } = await sealedCache();
    const edited = { ...ALPHA, 'instruction.md': 'Something easier.\n' };
    await writeFiles(join(folder, 'alpha'), { 'instruction.md': edited['instruction.md'] });
    await editManifest(folder, ([alpha]) => {
      const shown = toTaskFiles(edited).filter(({ path }) => isPublicFile(path));
      if (alpha) alpha.public_digest = publicDigest(digestFiles(shown));
    });
    const cache = await openCache(folder);
    expect(await rejectionCode(cache.unseal('alpha', key('alpha')))).toBe('sealed_digest_mismatch');
  });

  it('notices other tests that were sealed with the right key', async () => {
    const { folder, key } = await sealedCache();
    const { tests, digest } = saltedTask('alpha', ALPHA);
    const others = tests.map((file) =>
      file.path === 'tests/data/x.txt' ? { ...file, bytes: Buffer.from('y') } : file,
    );
    const context = { cacheId: CACHE_ID, taskDigest: digest, taskId: 'alpha' };
    const resealed = await sealTests(others, key('alpha'), context, labelled('again', 12));
    await writeFile(blob(folder, 'alpha'), resealed);
    await editManifest(folder, ([alpha]) => {
      if (alpha) alpha.sealed = { sha256: sha256Hex(resealed), size: resealed.length };
    });
    const cache = await openCache(folder);
    expect(await rejectionCode(cache.unseal('alpha', key('alpha')))).toBe('sealed_digest_mismatch');
  });

  it('is not what an unsealed cache is', async () => {
    const folder = scratchFolder();
    await writeCache(folder, { alpha: PLAIN_TASK });
    const cache = await openCache(folder);
    expect(cache.cacheId).toBeNull();
    expect(await rejectionCode(cache.unseal('alpha', Buffer.alloc(32)))).toBe('cache_not_sealed');
  });
});
