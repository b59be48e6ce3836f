import { chmod, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readGoldenKey as read } from '../../../challenge/golden-key.ts';
import { writeGoldenKey } from '../../../scripts/tasks/golden-key.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

const DIGITS = '0f'.repeat(32);

async function keyFile(text: string, mode = 0o600): Promise<string> {
  const path = join(scratchFolder(), 'golden.key');
  await writeFile(path, text);
  await chmod(path, mode);
  return path;
}

const readGoldenKey = async (path: string) => read(path);

describe('writeGoldenKey', () => {
  it('writes 32 random bytes for its owner alone, that can be read back', async () => {
    const folder = scratchFolder();
    await writeGoldenKey(join(folder, 'a'));
    await writeGoldenKey(join(folder, 'b'));
    expect(((await stat(join(folder, 'a'))).mode & 0o777).toString(8)).toBe('600');
    const [a, b] = [await readGoldenKey(join(folder, 'a')), await readGoldenKey(join(folder, 'b'))];
    expect([a.length, a.equals(b)]).toEqual([32, false]);
  });

  it('never writes over a file', async () => {
    const path = await keyFile(DIGITS);
    expect(await rejectionCode(writeGoldenKey(path))).toBe('golden_key_exists');
    expect(await readFile(path, 'ascii')).toBe(DIGITS);
  });

  it('says when the place cannot be written', async () => {
    expect(await rejectionCode(writeGoldenKey(join(scratchFolder(), 'no/such/key')))).toBe('usage');
  });
});

describe('readGoldenKey', () => {
  it.each([DIGITS, `${DIGITS}\n`])('reads %j', async (text) => {
    expect((await readGoldenKey(await keyFile(text))).toString('hex')).toBe(DIGITS);
  });

  it.each<[string, string, number]>([
    ['others may read', DIGITS, 0o644],
    ['a group may read', DIGITS, 0o640],
    ['others may write', DIGITS, 0o602],
    ['is empty', '', 0o600],
    ['is short', DIGITS.slice(2), 0o600],
    ['is long', `${DIGITS}00`, 0o600],
    ['is in capitals', DIGITS.toUpperCase(), 0o600],
    ['is no hex', 'x'.repeat(64), 0o600],
    ['is huge', 'a'.repeat(100_000), 0o600],
  ])('refuses a file that %s', async (_, text, mode) => {
    const error = await readGoldenKey(await keyFile(text, mode)).catch((cause: Error) => cause);
    expect(error).toMatchObject({ code: 'golden_key_invalid', fault: 'input' });
    expect((error as Error).message).not.toContain(DIGITS.slice(0, 16));
  });

  it('refuses what is no file', async () => {
    const folder = scratchFolder();
    await mkdir(join(folder, 'd'), { mode: 0o700 });
    await symlink('nowhere', join(folder, 'l'));
    for (const name of ['d', 'l', 'absent'])
      expect(await rejectionCode(readGoldenKey(join(folder, name)))).toBe('golden_key_invalid');
  });
});
