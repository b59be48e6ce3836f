import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readGoldenKey } from '../../challenge/golden-key.ts';
import { writeGoldenKey } from '../../scripts/tasks/golden-key.ts';
import { scratchFolder } from '../support/scratch.ts';
import { codeOf, thrown } from '../support/throws.ts';

const path = join(scratchFolder(), 'golden.key');

it('is what keygen wrote, and its owner alone may read it', async () => {
  await writeGoldenKey(path);
  expect(readGoldenKey(path)).toHaveLength(32);
  for (const mode of [0o640, 0o604, 0o620]) {
    chmodSync(path, mode);
    expect(codeOf(() => readGoldenKey(path))).toBe('golden_key_invalid');
  }
  chmodSync(path, 0o600);
  for (const text of ['', 'ab', 'AB'.repeat(32), `${'ab'.repeat(32)}\n\n`, 'x'.repeat(64)]) {
    writeFileSync(path, text);
    const error = thrown(() => readGoldenKey(path));
    expect(error.code).toBe('golden_key_invalid');
    if (text !== '') expect(error.message).not.toContain(text);
  }
  expect(codeOf(() => readGoldenKey('/nowhere'))).toBe('golden_key_invalid');
});
