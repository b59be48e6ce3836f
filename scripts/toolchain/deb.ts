import { spawn } from 'node:child_process';
import { posix } from 'node:path';
import { extract } from 'tar-stream';
import { EvaluatorError } from '../../guest/errors.ts';

/** A package's regular files and links by path, without a leading slash. */
export type DebFiles = ReadonlyMap<string, { bytes: Buffer; mode: number } | { link: string }>;

/**
 * Reads a .deb; nothing of it is unpacked to disk or run.
 * @throws toolchain_unavailable without dpkg-deb, toolchain_invalid when it is no readable package.
 */
export async function readDeb(path: string): Promise<DebFiles> {
  const files = new Map<string, { bytes: Buffer; mode: number } | { link: string }>();
  const child = spawn('dpkg-deb', ['--fsys-tarfile', path], { stdio: ['ignore', 'pipe', 'ignore'] });
  const failed = new Promise<never>((_, reject) => {
    child.on('error', (cause) =>
      reject(
        new EvaluatorError('toolchain_unavailable', 'building the toolchain needs dpkg-deb (Debian: dpkg)', {
          cause,
        }),
      ),
    );
  });
  const status = new Promise<number | null>((resolve) => child.on('close', resolve));
  const archive = extract();
  child.stdout.pipe(archive);
  const read = async () => {
    for await (const entry of archive) {
      const { name, type, linkname, mode } = entry.header;
      const file = posix.normalize(name).replace(/^\/+/, '');
      const chunks: Buffer[] = [];
      for await (const chunk of entry) chunks.push(chunk as Buffer);
      if (type === 'file') files.set(file, { bytes: Buffer.concat(chunks), mode: mode ?? 0o644 });
      else if (type === 'symlink') files.set(file, { link: linkTarget(file, linkname ?? '') });
      else if (type === 'link') files.set(file, { link: posix.normalize(linkname ?? '') });
    }
    if ((await status) !== 0 || files.size === 0)
      throw new EvaluatorError('toolchain_invalid', `${path} is no readable Debian package: remove it.`);
  };
  await Promise.race([read(), failed]);
  return files;
}

function linkTarget(file: string, link: string): string {
  const target = link.startsWith('/') ? link : posix.join('/', posix.dirname(file), link);
  return posix.normalize(target).replace(/^\/+/, '');
}

/** The bytes of a path of some packages, links followed; null where there are none. */
export function readFrom(debs: readonly DebFiles[], path: string): { bytes: Buffer; mode: number } | null {
  let at = path;
  for (let hops = 0; hops < 8; hops++) {
    const here = at;
    const found = debs.map((deb) => deb.get(here)).find((entry) => entry !== undefined);
    if (found === undefined) return null;
    if ('bytes' in found) return found;
    at = found.link;
  }
  return null;
}
