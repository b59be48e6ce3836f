import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import type { ImageFiles } from './buildah.ts';

/** What of a layer's entry is measured, as one line to compare and to show. */
export type LayerEntries = ReadonlyMap<string, string>;

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return buffer.equals(Buffer.from([0x1f, 0x8b]));
  } finally {
    await handle.close();
  }
}

/** The entries of one layer file, a tar that may be compressed, in its order. */
export async function readLayer(file: string): Promise<LayerEntries> {
  const entries = new Map<string, string>();
  const tar = extract();
  tar.on('entry', (header, body, next) => {
    const hash = createHash('sha256');
    body.on('data', (chunk) => hash.update(chunk as Buffer));
    body.on('error', next);
    body.on('end', () => {
      const { name, type, mode = 0, uid = 0, gid = 0, size = 0, mtime, linkname } = header;
      const content = type === 'file' ? ` sha256 ${hash.digest('hex')}` : '';
      const target = linkname ? ` to ${linkname}` : '';
      entries.set(
        `/${name.replace(/^\.?\//, '').replace(/\/$/, '')}`,
        `${type} ${(mode & 0o7777).toString(8)} ${uid}:${gid} ${size} bytes ${mtime?.toISOString() ?? ''}${target}${content}`,
      );
      next();
    });
  });
  const bytes = createReadStream(file);
  if (await isGzip(file)) await pipeline(bytes, createGunzip(), tar);
  else await pipeline(bytes, tar);
  return entries;
}

const layerFile = ({ folder }: ImageFiles, digest: string) => join(folder, digest.replace(/^sha256:/, ''));

/** Every entry of an image, a later layer's over an earlier one's. */
export async function readImage(image: ImageFiles): Promise<LayerEntries> {
  const all = new Map<string, string>();
  for (const { digest } of image.layers)
    for (const [name, entry] of await readLayer(layerFile(image, digest))) all.set(name, entry);
  return all;
}

/** The first entry, by name, in which two sets differ: a sentence, or null. */
export function differingEntry(one: LayerEntries, other: LayerEntries): string | null {
  const names = [...new Set([...one.keys(), ...other.keys()])].sort();
  const name = names.find((path) => one.get(path) !== other.get(path));
  if (name === undefined) return null;
  return `${name}: ${one.get(name) ?? 'absent'} in one, ${other.get(name) ?? 'absent'} in the other`;
}

/** Where two images first differ: a sentence, or null when their digests are equal. */
export async function firstDifference(one: ImageFiles, other: ImageFiles): Promise<string | null> {
  if (one.digest === other.digest) return null;
  const count = Math.max(one.layers.length, other.layers.length);
  for (let i = 0; i < count; i += 1) {
    const [left, right] = [one.layers[i], other.layers[i]];
    if (left === undefined || right === undefined) return `layer ${i} is in one image only`;
    if (left.digest === right.digest) continue;
    const entries = [layerFile(one, left.digest), layerFile(other, right.digest)].map(readLayer);
    const [first, second] = await Promise.all(entries);
    const difference = first && second ? differingEntry(first, second) : null;
    return `layer ${i}: ${difference ?? 'the same entries, in another order or compressed otherwise'}`;
  }
  return 'the layers are equal; the configurations differ';
}
