import { EvaluatorError } from '../errors.ts';
import { checkedPath, looksCompressed } from './tar-name.ts';

const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;

/** A file, or a directory that is ours: an entry for one of the image's would reset its mode (spec/03, 3). */
export type TarEntry =
  | { path: string; directory: true }
  | { path: string; bytes: Uint8Array; mode: 0o644 | 0o755 };

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
    const split = splitName(name);
    if (split === null) {
      const record = paxRecord('path', name);
      blocks.push(header('x', splitName(Buffer.from('pax-header')), 0o644, record.length), padded(record));
    }
    const [type, mode] = 'directory' in entry ? (['5', 0o755] as const) : (['0', entry.mode] as const);
    blocks.push(
      header(type, split ?? { prefix: EMPTY, name: name.subarray(0, NAME_BYTES) }, mode, bytes.length),
    );
    blocks.push(padded(bytes));
  }
  blocks.push(Buffer.alloc(2 * BLOCK_BYTES));
  return Buffer.concat(blocks);
}

const EMPTY = Buffer.alloc(0);

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

type SplitName = { prefix: Buffer; name: Buffer } | null;

/** Where ustar can cut the name, at a slash, into its two fields; null when it cannot. */
function splitName(name: Buffer): SplitName {
  if (name.length <= NAME_BYTES) return { prefix: EMPTY, name };
  for (let at = name.indexOf(0x2f); at > 0 && at <= PREFIX_BYTES; at = name.indexOf(0x2f, at + 1)) {
    const rest = name.subarray(at + 1);
    if (rest.length > 0 && rest.length <= NAME_BYTES) return { prefix: name.subarray(0, at), name: rest };
  }
  return null;
}

/** `LENGTH KEY=VALUE\n`, where the length counts its own digits. */
function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function header(type: '0' | '5' | 'x', split: SplitName, mode: number, size: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  split?.name.copy(block, 0);
  writeOctal(block, 100, 8, mode);
  writeOctal(block, 108, 8, 0);
  writeOctal(block, 116, 8, 0);
  writeOctal(block, 124, 12, size);
  writeOctal(block, 136, 12, 0);
  block.fill(' ', 148, 156);
  block.write(type, 156);
  block.write('ustar\x0000', 257, 'latin1');
  split?.prefix.copy(block, 345);
  writeOctal(
    block,
    148,
    7,
    block.reduce((sum, byte) => sum + byte, 0),
  );
  return block;
}

function writeOctal(block: Buffer, at: number, width: number, value: number): void {
  const digits = value.toString(8).padStart(width - 1, '0');
  if (digits.length >= width) throw refused('', `${value} does not fit a tar header`);
  block.write(`${digits}\0`, at, 'latin1');
}

function padded(bytes: Buffer): Buffer {
  const tail = (BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES;
  return Buffer.concat([bytes, Buffer.alloc(tail)]);
}
