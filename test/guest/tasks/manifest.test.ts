import { describe, expect, it } from 'vitest';
import { cacheDigest, encodeManifest, type Manifest, parseManifest } from '../../../guest/tasks/manifest.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { manifestTask, PLAIN_TASK } from '../../support/plain-task.ts';
import { codeOf } from '../../support/throws.ts';

const VALID: Manifest = {
  schema_version: 1,
  cache_id: null,
  toolchain_digest: 'a'.repeat(64),
  tasks: [manifestTask('alpha', PLAIN_TASK), manifestTask('beta', PLAIN_TASK)],
};
const [first, second] = VALID.tasks as [Manifest['tasks'][0], Manifest['tasks'][0]];
const sealed = { sha256: 'b'.repeat(64), size: 4096 };

const parseValue = (value: unknown) => parseManifest(encodeCanonical(value));

describe('parseManifest', () => {
  it('reads what encodeManifest wrote', () => {
    expect(parseManifest(encodeManifest(VALID))).toEqual(VALID);
  });

  it('takes artifact paths', () => {
    const tasks = [{ ...first, verifier: 'artifact', artifact_paths: ['/app', '/srv/data'] }];
    expect(parseValue({ ...VALID, tasks })).toEqual({ ...VALID, tasks });
  });

  it('takes a sealed manifest', () => {
    const tasks = VALID.tasks.map((task) => ({ ...task, sealed }));
    const value = { ...VALID, cache_id: 'c'.repeat(64), tasks };
    expect(parseValue(value)).toEqual(value);
  });

  it.each<[string, unknown]>([
    ['another version', { ...VALID, schema_version: 2 }],
    ['an unknown field', { ...VALID, comment: 'x' }],
    ['an unknown field of a task', { ...VALID, tasks: [{ ...first, note: 'x' }] }],
    ['no task', { ...VALID, tasks: [] }],
    ['tasks out of order', { ...VALID, tasks: [second, first] }],
    ['a task twice', { ...VALID, tasks: [first, first] }],
    ['names that differ in case only', { ...VALID, tasks: [{ ...first, task_id: 'Beta' }, second] }],
    ['a name that leaves the cache', { ...VALID, tasks: [{ ...first, task_id: '../alpha' }] }],
    ['an image by tag', { ...VALID, tasks: [{ ...first, image: 'ubuntu:24.04' }] }],
    ['a short digest', { ...VALID, tasks: [{ ...first, task_digest: 'ab' }] }],
    ['an unknown base', { ...VALID, tasks: [{ ...first, base: 'mirror' }] }],
    ['artifact paths of another mode', { ...VALID, tasks: [{ ...first, artifact_paths: ['/app'] }] }],
    ['artifacts from nowhere', { ...VALID, tasks: [{ ...first, verifier: 'artifact' }] }],
    [
      'artifacts from the system',
      { ...VALID, tasks: [{ ...first, verifier: 'artifact', artifact_paths: ['/usr'] }] },
    ],
    ['one task sealed', { ...VALID, cache_id: 'c'.repeat(64), tasks: [{ ...first, sealed }, second] }],
    ['sealed tasks without a cache id', { ...VALID, tasks: [{ ...first, sealed }] }],
    ['a cache id without sealed tasks', { ...VALID, cache_id: 'c'.repeat(64) }],
  ])('refuses %s', (_, value) => {
    expect(codeOf(() => parseValue(value))).toBe('schema_invalid');
  });

  it('refuses bytes that are not canonical', () => {
    const bytes = Buffer.concat([encodeManifest(VALID), Buffer.from('\n')]);
    expect(codeOf(() => parseManifest(bytes))).toBe('json_not_canonical');
  });
});

describe('cacheDigest', () => {
  it('is the hash of the file', () => {
    expect(cacheDigest(VALID)).toBe(sha256Hex(encodeManifest(VALID)));
  });
});
