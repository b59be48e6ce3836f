import { EvaluatorError } from '../errors.ts';
import { encodeHeader, endOfArchive, padding } from './tar-encode.ts';
import { checkedPath, looksCompressed } from './tar-name.ts';

/** A file, or a directory that is ours: an entry for one of the image's would reset its mode (spec/03, 3). */
export type TarEntry =
  | { path: string; directory: true }
  | { path: string; bytes: Uint8Array; mode: 0o600 | 0o644 | 0o755 };

/**
 * An uncompressed tar, the same bytes for the same entries: owner 0, time 0, directories 0755. Paths are
 * relative and POSIX; `./` stands for the target itself. Throws `archive_entry_invalid` for a path that an
 * unpacker could read in another way.
 */
export function packTar(entries: readonly TarEntry[]): Buffer {
  const blocks: Buffer[] = [];
  const seen = new Set<string>();
  for (const entry of entries) {
    const path = packedPath(entry);
    if (seen.has(path)) throw refused(path, 'comes twice');
    seen.add(path);
    // Unless `./` comes first, the engine would sniff the first name for a compressed archive.
    if (blocks.length === 0 && looksCompressed(Buffer.from(path))) throw refused(path, 'looks compressed');
    const name = Buffer.from('directory' in entry ? `${path}/` : path);
    const bytes = 'directory' in entry ? Buffer.alloc(0) : Buffer.from(entry.bytes);
    const [type, mode] = 'directory' in entry ? (['5', 0o755] as const) : (['0', entry.mode] as const);
    const header = encodeHeader({ name, type, mode, uid: 0, gid: 0, mtime: 0, size: bytes.length });
    blocks.push(header, bytes, padding(bytes.length));
  }
  blocks.push(endOfArchive());
  return Buffer.concat(blocks);
}

function packedPath(entry: TarEntry): string {
  if ('directory' in entry && (entry.path === './' || entry.path === '.')) return '.';
  if (!entry.path.isWellFormed()) throw refused(entry.path, 'the name is not Unicode');
  const checked = checkedPath(Buffer.from(entry.path));
  if (typeof checked === 'string') return checked;
  throw refused(entry.path, checked.reason);
}

function refused(path: string, reason: string): EvaluatorError {
  return new EvaluatorError('archive_entry_invalid', `tar entry ${JSON.stringify(path)}: ${reason}`);
}
