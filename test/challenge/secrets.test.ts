import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { keptSecret, loadKeys, writeSecret } from '../../challenge/secrets.ts';
import { scratchFolder } from '../support/scratch.ts';

it("a secret is its owner's alone, and the same for every process that makes it at once", async () => {
  const folder = scratchFolder();
  const path = join(folder, 'secret');
  const kept = await keptSecret(path, () => {
    writeSecret(path, 'of a faster process');
    return 'of a slower one';
  });
  expect(kept).toBe('of a faster process');
  expect(await keptSecret(path, () => 'a third')).toBe(kept);
  expect(readdirSync(folder)).toEqual(['secret']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it("keys are made once, below a folder that is their owner's", async () => {
  const folder = join(scratchFolder(), 'state');
  const [first, second] = await Promise.all([loadKeys(folder), loadKeys(folder)]);
  expect(first.epochSecret).toEqual(second.epochSecret);
  expect(first.rootKey.equals(second.rootKey)).toBe(true);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

it('what cannot be read for another reason is not made anew', async () => {
  const path = join(scratchFolder(), 'folder');
  mkdirSync(path);
  await expect(keptSecret(path, () => 'new')).rejects.toMatchObject({ code: 'EISDIR' });
});
