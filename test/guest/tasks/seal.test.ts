import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openSealed, sealTests } from '../../../guest/tasks/seal.ts';
import { taskKey } from '../../../guest/tasks/task-key.ts';
import type { TaskFile } from '../../../guest/tasks/types.ts';
import { CACHE_ID, GOLDEN_KEY, labelled, saltedTask } from '../../support/sealed-cache.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';

const { tests, digest } = saltedTask('alpha', { 'tests/test.sh': 'exit 0\n', 'tests/data/x.txt': 'x' });
const context = { cacheId: CACHE_ID, taskDigest: digest, taskId: 'alpha' };
const key = taskKey(GOLDEN_KEY, CACHE_ID, digest);
const nonce = labelled('nonce', 12);
const seal = (files: readonly TaskFile[] = tests) => sealTests(files, key, context, nonce);

describe('taskKey', () => {
  it('is HKDF-SHA256 with the raw cache_id as salt', () => {
    // hkdf(sha256, 47*32, salt c1*32, info task-cache/v1:9a*32), computed with Python's hmac.
    expect(taskKey(GOLDEN_KEY, CACHE_ID, '9a'.repeat(32)).toString('hex')).toBe(
      '12d41d75bd8fb178b14e185aabc8bcfff80c9d410a3f2509f513b41299bc0531',
    );
  });

  it('differs by golden key, cache and task', () => {
    const others = [
      taskKey(Buffer.alloc(32, 0x48), CACHE_ID, digest),
      taskKey(GOLDEN_KEY, 'c2'.repeat(32), digest),
      taskKey(GOLDEN_KEY, CACHE_ID, '00'.repeat(32)),
    ].map((other) => other.toString('hex'));
    expect(new Set([...others, key.toString('hex')]).size).toBe(4);
  });

  it('refuses a golden key of another size', () => {
    expect(codeOf(() => taskKey(Buffer.alloc(31), CACHE_ID, digest))).toBe('golden_key_invalid');
  });
});

describe('sealTests and openSealed', () => {
  it('give back what went in, salt first and sorted', async () => {
    const opened = await openSealed(await seal(), key, context);
    expect(opened.map(({ path }) => path)).toEqual(['tests/.salt', 'tests/data/x.txt', 'tests/test.sh']);
    expect(opened[2]).toEqual({
      path: 'tests/test.sh',
      bytes: Buffer.from('exit 0\n'),
      executable: true,
    });
  });

  it('are deterministic, whatever the order of the files', async () => {
    expect(await seal([...tests].reverse())).toEqual(await seal());
  });

  it('hide the size but for its power of two', async () => {
    const of = async (bytes: number) =>
      (await seal([...tests, { path: 'tests/z', bytes: Buffer.alloc(bytes), executable: false }])).length;
    expect(await of(1)).toBe(8192 + 28);
    expect(await of(1500)).toBe(8192 + 28);
    expect(await of(3000)).toBe(8192 + 28);
    expect(await of(5000)).toBe(16384 + 28);
  });

  it('show no plain text', async () => {
    const blob = await seal();
    expect(blob.includes('exit 0') || blob.includes('test.sh')).toBe(false);
  });

  const name = fc.stringMatching(/^[a-z0-9_é -]{1,60}$/).filter((text) => text.trim() !== '');
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => `tests/${parts.join('/')}.f`);
  const file = fc.record({
    path,
    bytes: fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
    executable: fc.boolean(),
  });
  const folders = fc.uniqueArray(file, { maxLength: 8, selector: (one) => one.path });
  const salt = { path: 'tests/.salt', bytes: labelled('salt', 32), executable: false };

  it('hold for any names, contents and modes', async () => {
    await fc.assert(
      fc.asyncProperty(folders, async (files) => {
        const opened = await openSealed(await seal([...files, salt]), key, context);
        const sorted = files.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
        expect(opened).toEqual([salt, ...sorted]);
      }),
      { numRuns: 60 },
    );
  });

  it.each<[string, string, TaskFile[]]>([
    ['no salt', 'sealed_malformed', tests.slice(0, 2)],
    ['a short salt', 'sealed_malformed', [{ ...salt, bytes: Buffer.alloc(31) }]],
    ['a public file', 'sealed_malformed', [salt, { ...salt, path: 'instruction.md' }]],
    ['a name that leaves the folder', 'task_file_name', [salt, { ...salt, path: 'tests/../x' }]],
    ['a name twice', 'task_file_collision', [salt, salt]],
  ])('refuse %s', async (_, code, files) => {
    expect(await rejectionCode(seal(files))).toBe(code);
  });
});

describe('openSealed refuses', () => {
  it('every changed byte of nonce, head, ciphertext and tag', async () => {
    const blob = await seal();
    const places = [0, 11, 12, 13, 600, blob.length / 2, blob.length - 17, blob.length - 16, blob.length - 1];
    for (const at of places) {
      const changed = Buffer.from(blob);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(await rejectionCode(openSealed(changed, key, context)), `byte ${at}`).toBe('sealed_unopenable');
    }
  });

  it('a shortened, lengthened or empty blob', async () => {
    const blob = await seal();
    for (const changed of [
      blob.subarray(0, -1),
      blob.subarray(1),
      Buffer.concat([blob, Buffer.alloc(1)]),
      blob.subarray(0, 28),
      Buffer.alloc(0),
    ])
      expect(await rejectionCode(openSealed(changed, key, context))).toBe('sealed_unopenable');
  });

  it('a wrong key', async () => {
    const wrong = taskKey(GOLDEN_KEY, CACHE_ID, 'ab'.repeat(32));
    expect(await rejectionCode(openSealed(await seal(), wrong, context))).toBe('sealed_unopenable');
  });

  it.each([
    ['cache', { cacheId: 'c2'.repeat(32) }],
    ['task digest', { taskDigest: '00'.repeat(32) }],
    ['task', { taskId: 'beta' }],
  ])('another %s', async (_, change) => {
    const code = rejectionCode(openSealed(await seal(), key, { ...context, ...change }));
    expect(await code).toBe('sealed_unopenable');
  });
});
