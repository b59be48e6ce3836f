import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { build } from '../../../scripts/cli/build.ts';
import { buildImage } from '../../../scripts/images/build.ts';
import { readRevision } from '../../../scripts/images/source.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';

describe('evaluator build', () => {
  it.each([
    [['--image', 'both']],
    [['--image', 'eval']],
    [['--image', 'review', '--cache', '/tmp']],
    [['--push']],
    [['--image', 'review', '--builder', 'kaniko']],
    [['eval']],
  ])('refuses %j', async (argv) => {
    expect(await rejectionCode(build(argv))).toBe('usage');
  });
});

describe('buildImage', () => {
  it.each(['node:24-slim', 'node@sha256:1234', 'registry.example/node:24'])(
    'refuses the base %s',
    async (base) => {
      const request = {
        builder: 'buildah',
        role: 'review',
        repository: '.',
        base,
        cache: null,
        onProgress: () => {},
      } as const;
      expect(await rejectionCode(buildImage(request, scratchFolder()))).toBe('build_base_unpinned');
    },
  );
});

describe('readRevision', () => {
  it('refuses a folder that is no checkout', async () => {
    expect(await rejectionCode(readRevision(scratchFolder()))).toBe('build_source_invalid');
  });

  it('reads commit and time', async () => {
    const { commit, epoch } = await readRevision(join(import.meta.dirname, '../../..'));
    expect(commit).toMatch(/^[0-9a-f]{40}$/);
    expect(Number.isSafeInteger(epoch)).toBe(true);
  });
});
