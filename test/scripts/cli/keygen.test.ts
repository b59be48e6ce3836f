import { execFile } from 'node:child_process';
import { chmod, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../../support/scratch.ts';

const MAIN = join(import.meta.dirname, '../../../scripts/cli/main.ts');

function evaluator(...args: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

describe('evaluator keygen', () => {
  it('makes a key, shows where and never which, and makes it once', async () => {
    const out = join(scratchFolder(), 'golden.key');
    const made = await evaluator('keygen', '--out', out, '--json');
    expect(made).toMatchObject({ status: 0, stdout: `${JSON.stringify({ out })}\n`, stderr: '' });
    expect(await readFile(out, 'ascii')).toMatch(/^[0-9a-f]{64}\n$/);
    expect(await evaluator('keygen', '--out', out)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('[golden_key_exists]'),
    });
  });

  it('needs a place', async () => {
    expect(await evaluator('keygen')).toMatchObject({ status: 2, stderr: expect.stringContaining('--out') });
  });
});

describe('evaluator bake --seal', () => {
  it('refuses a key that others can read, before it bakes anything', async () => {
    const folder = scratchFolder();
    const key = join(folder, 'golden.key');
    await evaluator('keygen', '--out', key);
    await chmod(key, 0o644);
    const baked = await evaluator(
      'bake',
      '--from',
      'task-cache',
      '--out',
      join(folder, 'cache'),
      '--seal',
      key,
    );
    expect(baked).toMatchObject({ status: 2, stderr: expect.stringContaining('[golden_key_invalid]') });
  });
});
