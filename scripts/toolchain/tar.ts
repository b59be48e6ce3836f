import { pack } from 'tar-stream';

/** A file of an archive; folders follow from the paths. */
export type TarFile = { path: string; mode: 0o644 | 0o755; bytes: Uint8Array };

/**
 * An uncompressed tar that depends on nothing but its files: names sorted by code unit, folders before what is
 * in them, time, owner and group 0, folders 0755.
 */
export async function deterministicTar(files: readonly TarFile[]): Promise<Buffer> {
  const folders = new Set(files.flatMap((file) => parents(file.path)));
  const entries = [
    ...[...folders].map((path) => ({ path: `${path}/`, mode: 0o755, bytes: null })),
    ...files,
  ].sort((a, b) => (a.path < b.path ? -1 : 1));
  const archive = pack();
  for (const { path, mode, bytes } of entries) {
    const header = { name: path, mode, mtime: new Date(0), uid: 0, gid: 0, uname: '', gname: '' };
    if (bytes === null) archive.entry({ ...header, type: 'directory' });
    else archive.entry({ ...header, type: 'file' }, Buffer.from(bytes));
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parents(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}
