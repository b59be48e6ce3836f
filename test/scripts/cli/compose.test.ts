import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { evaluator } from '../../support/evaluator.ts';
import { scratchFolder } from '../../support/scratch.ts';

const IMAGE = `ghcr.io/owner/evaluator@sha256:${'a'.repeat(64)}`;
const DEPLOYED = ['--image', IMAGE, '--plan-root', 'b'.repeat(64), '--challenge-id', 'chal-1'];

const refused = (code: string) => ({ code: 2, stdout: '', stderr: expect.stringContaining(`[${code}]`) });

describe('evaluator compose', () => {
  it('writes the bytes whose hash it names, and finds them again', async () => {
    const out = join(scratchFolder(), 'app-compose.json');
    const args = ['--agent-env', 'MODEL_KEY,MODEL', '--key-provider-id', 'c0ffee'];
    const made = await evaluator(['compose', ...DEPLOYED, ...args, '--out', out, '--json']);
    const hash = createHash('sha256')
      .update(await readFile(out))
      .digest('hex');
    const expected = { compose_hash: hash, role: 'eval', image_ref: IMAGE, key_provider_id: 'c0ffee' };
    expect(JSON.parse(made.stdout)).toEqual({ ...expected, out, checked: null });
    const checked = await evaluator(['compose', '--check', out, '--json']);
    expect(JSON.parse(checked.stdout)).toEqual({ ...expected, out: null, checked: out });
    const same = await evaluator(['compose', ...DEPLOYED, ...args, '--check', out]);
    expect(same).toMatchObject({ code: 0, stdout: `compose hash ${hash}\n` });
  });

  it('tells another compose apart, and in what', async () => {
    const out = join(scratchFolder(), 'app-compose.json');
    await evaluator(['compose', ...DEPLOYED, '--role', 'review', '--out', out]);
    const other = await evaluator(['compose', ...DEPLOYED, '--check', out]);
    expect(other).toMatchObject(refused('compose_mismatch'));
    expect(other.stderr).toContain('allowed_envs differs');
    await writeFile(out, `${await readFile(out, 'utf8')} `);
    expect(await evaluator(['compose', '--check', out])).toMatchObject(refused('compose_mismatch'));
  });

  it.each<[string, string[], string]>([
    ['no image', [], 'usage'],
    ['an image by tag', ['--image', 'x:1', ...DEPLOYED.slice(2)], 'schema_invalid'],
    ['a short key', [...DEPLOYED, '--plan-root', 'bb'], 'schema_invalid'],
    ['an unknown role', [...DEPLOYED, '--role', 'both'], 'usage'],
    ['an agent of a review', [...DEPLOYED, '--role', 'review', '--agent-env', 'A'], 'usage'],
    ['a variable of the shell', [...DEPLOYED, '--agent-env', 'BASH_ENV'], 'env_name_refused'],
    ['a file that is not there', ['--check', '/absent'], 'usage'],
  ])('refuses %s', async (_, args, code) => {
    expect(await evaluator(['compose', ...args])).toMatchObject(refused(code));
  });
});
