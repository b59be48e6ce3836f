import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Requirement } from '../../../scripts/toolchain/requirements.ts';
import { unzip } from '../../../scripts/toolchain/unzip.ts';
import { fetchWheels } from '../../../scripts/toolchain/wheels.ts';
import { scratchFolder } from '../../support/scratch.ts';

const WHEEL = Buffer.from('bytes of a wheel');
const REQUIREMENT: Requirement = {
  form: 'wheel',
  python: null,
  name: 'demo',
  version: '1.0',
  sha256: createHash('sha256').update(WHEEL).digest('hex'),
};
let cache: string;

beforeEach(() => {
  cache = scratchFolder();
  mkdirSync(join(cache, 'wheels'));
  // No tool can be found: what is asked for must be in the cache.
  vi.stubEnv('PATH', cache);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

function cached(bytes: Buffer): void {
  writeFileSync(join(cache, 'wheels', REQUIREMENT.sha256), bytes);
}

describe('fetchWheels', () => {
  it('needs no network for a wheel that the cache has', () => {
    cached(WHEEL);
    expect(fetchWheels([REQUIREMENT], cache).get(REQUIREMENT.sha256)).toEqual(WHEEL);
  });

  it('does not take a cached wheel with another hash', () => {
    cached(Buffer.from('bytes of another'));
    expect(() => fetchWheels([REQUIREMENT], cache)).toThrowError(
      expect.objectContaining({ code: 'toolchain_unavailable' }),
    );
  });
});

describe('unzip', () => {
  it('refuses what is no ZIP, by name', async () => {
    await expect(unzip(WHEEL, 'demo==1.0', /(?!)/)).rejects.toMatchObject({
      code: 'toolchain_invalid',
      message: expect.stringContaining('demo==1.0'),
    });
  });
});
