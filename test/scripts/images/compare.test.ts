import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { differingEntry, firstDifference, readLayer } from '../../../scripts/images/compare.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SAME = { mtime: new Date(0), uid: 0, gid: 0 };

async function writeLayer(file: string, files: Readonly<Record<string, string>>): Promise<void> {
  const tar = pack();
  tar.entry({ ...SAME, name: './opt/', type: 'directory', mode: 0o40755 });
  for (const [name, text] of Object.entries(files)) tar.entry({ ...SAME, name, mode: 0o644 }, text);
  tar.finalize();
  await pipeline(tar, createGzip(), createWriteStream(file));
}

async function image(digest: string, layers: Readonly<Record<string, Readonly<Record<string, string>>>>) {
  const folder = join(scratchFolder(), 'image');
  await mkdir(folder);
  for (const [name, files] of Object.entries(layers)) await writeLayer(join(folder, name), files);
  const names = Object.keys(layers).map((name) => ({ digest: `sha256:${name}`, size: 0 }));
  return { folder, digest, imageId: '', layers: names };
}

describe('readLayer', () => {
  it('reads type, mode, owner, size, time and content of each entry', async () => {
    const file = join(scratchFolder(), 'layer');
    await writeLayer(file, { 'opt/a': 'x' });
    expect([...(await readLayer(file))]).toEqual([
      ['/opt', 'directory 755 0:0 0 bytes 1970-01-01T00:00:00.000Z'],
      [
        '/opt/a',
        'file 644 0:0 1 bytes 1970-01-01T00:00:00.000Z sha256 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881',
      ],
    ]);
  });
});

describe('differingEntry', () => {
  it('names the first by name, and what is absent', () => {
    const one = new Map([
      ['/a', '1'],
      ['/c', '1'],
    ]);
    const other = new Map([
      ['/a', '1'],
      ['/b', '2'],
      ['/c', '2'],
    ]);
    expect(differingEntry(one, other)).toBe('/b: absent in one, 2 in the other');
    expect(differingEntry(one, one)).toBeNull();
  });
});

describe('firstDifference', () => {
  it('is none between equal digests', async () => {
    const same = await image('d', { l: { a: '1' } });
    expect(await firstDifference(same, same)).toBeNull();
  });

  it('names layer and entry', async () => {
    const one = await image('d1', { base: { x: '1' }, l1: { a: '1', b: '1' } });
    const other = await image('d2', { base: { x: '1' }, l2: { a: '1', b: '2' } });
    expect(await firstDifference(one, other)).toMatch(
      /^layer 1: \/b: file 644 .* in one, file 644 .* in the other$/,
    );
  });

  it('says when only the order, the configuration or the number of layers differs', async () => {
    const one = await image('d1', { l1: { a: '1', b: '1' } });
    const turned = await image('d2', { l2: { b: '1', a: '1' } });
    expect(await firstDifference(one, turned)).toBe(
      'layer 0: the same entries, in another order or compressed otherwise',
    );
    expect(await firstDifference(one, { ...one, digest: 'd3' })).toBe(
      'the layers are equal; the configurations differ',
    );
    expect(await firstDifference(one, { ...one, digest: 'd4', layers: [] })).toBe(
      'layer 0 is in one image only',
    );
  });
});
