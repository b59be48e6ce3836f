import { describe, expect, it } from 'vitest';
import type { Engine, ImageInfo } from '../../../guest/engine/port.ts';
import { type Code, EvaluatorError } from '../../../guest/errors.ts';
import { resolveImages } from '../../../guest/stages/images.ts';
import type { CachedTask } from '../../../guest/tasks/types.ts';
import { LABEL } from '../../../guest/trial/labels.ts';
import { rejectionCode } from '../../support/throws.ts';

const IMAGE: ImageInfo = {
  id: 'sha256:1',
  architecture: 'amd64',
  os: 'linux',
  sizeBytes: 1,
  workingDir: '/app',
  env: ['PATH=/bin'],
  volumes: [],
  labels: { 'org.example': 'x' },
};
const task = (taskId: string, imageSource: CachedTask['imageSource'] = 'built') =>
  ({ taskId, image: `ref-${taskId}`, imageSource }) as CachedTask;

/** An engine that knows these images, and gets `pullable` ones when asked to. */
function engineWith(known: Record<string, ImageInfo>, pullable: Record<string, ImageInfo> = {}) {
  const pulled: string[] = [];
  const counters = { faults: 0 };
  const engine = {
    image: async (ref: string) => known[ref] ?? null,
    pull: async (ref: string) => {
      pulled.push(ref);
      if (ref === 'ref-unreachable') throw new EvaluatorError('engine_error', 'no route');
      if (pullable[ref]) known[ref] = pullable[ref];
    },
  } as unknown as Engine;
  const context = { engine, counters, maxStartRetries: 2, signal: new AbortController().signal };
  return { context, counters, pulled };
}

describe('resolveImages', () => {
  it.each<[string, Partial<ImageInfo>, Code]>([
    ['of another architecture', { architecture: 'arm64' }, 'image_architecture'],
    ['of another system', { os: 'windows' }, 'image_architecture'],
    ['that declares a volume', { volumes: ['/data'] }, 'image_declares_volume'],
    ['that carries a label of ours', { labels: { [LABEL.owner]: '' } }, 'image_label_reserved'],
  ])('refuses an image %s', async (_, change, code) => {
    const { context } = engineWith({ 'ref-a': { ...IMAGE, ...change } });
    expect(await rejectionCode(resolveImages(context, [task('a')]))).toBe(code);
  });

  it('gives each task its image, / where it names no WORKDIR', async () => {
    const { context, pulled } = engineWith({
      'ref-a': IMAGE,
      'ref-b': { ...IMAGE, id: 'sha256:2', workingDir: '' },
    });
    const images = await resolveImages(context, [task('a'), task('b')]);
    expect(images.get('a')).toEqual({ id: 'sha256:1', env: ['PATH=/bin'], workdir: '/app', source: 'built' });
    expect([images.get('b')?.workdir, pulled]).toEqual(['/', []]);
  });

  it('pulls what a registry has, by its digest', async () => {
    const { context, pulled } = engineWith({}, { 'ref-a': IMAGE });
    expect((await resolveImages(context, [task('a', 'pulled')])).get('a')?.id).toBe('sha256:1');
    expect(pulled).toEqual(['ref-a']);
  });

  it('does not look for a built image anywhere else', async () => {
    const { context, pulled } = engineWith({}, { 'ref-a': IMAGE });
    expect(await rejectionCode(resolveImages(context, [task('a')]))).toBe('image_missing');
    expect(pulled).toEqual([]);
  });

  it('refuses one that is absent after its pull; a failing pull is made again, and counted', async () => {
    const { context, counters, pulled } = engineWith({});
    expect(await rejectionCode(resolveImages(context, [task('a', 'pulled')]))).toBe('image_missing');
    expect(await rejectionCode(resolveImages(context, [task('unreachable', 'pulled')]))).toBe('engine_error');
    expect([pulled.slice(1), counters.faults]).toEqual([Array(3).fill('ref-unreachable'), 3]);
  });
});
