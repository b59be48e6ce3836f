import type { Engine } from '../engine/port.ts';
import { packTar, type TarEntry } from '../engine/tar.ts';

/** `/a/b` → `/a`, `/a/b`. */
function prefixes(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '');
  return names.map((_, i) => `/${names.slice(0, i + 1).join('/')}`);
}

/**
 * Makes an image's WORKDIR in a stopped container where the image names a directory that it does not hold:
 * engines since 23 leave that to the start of a container in it, and ours start in `/`.
 * @throws engine_*.
 */
export async function ensureWorkdir(engine: Engine, containerId: string, workdir: string): Promise<void> {
  if ((await engine.statPath(containerId, workdir)) !== null) return;
  const missing: TarEntry[] = [];
  for (const path of prefixes(workdir)) {
    if (missing.length === 0 && (await engine.statPath(containerId, path)) !== null) continue;
    missing.push({ path: path.slice(1), directory: true });
  }
  await engine.putArchive(containerId, '/', packTar([{ path: './', directory: true }, ...missing]));
}
