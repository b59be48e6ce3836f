import { readWheel, type Wheel } from '../agent/dependencies/wheel.ts';
import { packTar, type TarEntry } from '../engine/tar.ts';
import { TOOLS } from './sandbox.ts';

const FOLDER = 'packages';

/** Where an agent's packages lie, read-only, in every container of a run. */
export const PACKAGES = `${TOOLS}/${FOLDER}`;

/** One wheel's files as a tar for the tools volume: what was looked into before is unpacked once more. */
export async function packagesTar(wheel: Wheel): Promise<Buffer> {
  const files = await readWheel(wheel, Number.POSITIVE_INFINITY);
  const folders = new Set([FOLDER]);
  const placed = files.map((file) => ({ ...file, path: `${FOLDER}/${file.path}` }));
  for (const { path } of placed) {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1))
      folders.add(path.slice(0, at));
  }
  return packTar([
    { path: './', directory: true },
    ...[...folders].sort().map((path): TarEntry => ({ path, directory: true })),
    ...placed.map(
      ({ path, bytes, executable }): TarEntry => ({ path, bytes, mode: executable ? 0o755 : 0o644 }),
    ),
  ]);
}
