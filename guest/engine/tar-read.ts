import type { Readable } from 'node:stream';
import { EvaluatorError } from '../errors.ts';
import { ByteSource } from './byte-source.ts';
import { withDeadline } from './deadline.ts';
import { readHeader, readPax, type TarHeader } from './tar-header.ts';
import { checkedPath, looksCompressed } from './tar-name.ts';

const BLOCK_BYTES = 512;
/** Two paths of 4 KiB and some room: the records of one entry that anything of ours is interested in. */
const MAX_PAX_BYTES = 16 * 1024;
/** Zeros after the end marker: writers fill up a record of 20 blocks. */
const MAX_TRAILER_BYTES = 64 * 1024;

/** What one archive may cost; all are required, none is "unlimited". */
export interface TarCaps {
  /** Of all files together. */
  totalBytes: number;
  /** Files and directories. */
  entries: number;
  /** Components of a path. */
  depth: number;
  timeMs: number;
}

export interface TarFile {
  /** Relative, POSIX, checked: no `..`, no control characters, no twin after NFC and case folding. */
  path: string;
  bytes: Buffer;
  /** Permission bits only. */
  mode: number;
}

/**
 * Reads a whole archive of regular files and directories from `stream`, which is destroyed at the end in any
 * case. Throws `archive_refused` for whatever spec/08 lists under archives, as soon as it is seen;
 * `engine_error` for an archive that breaks off, which nothing in a stopped container can cause, and
 * `engine_timeout`.
 */
export async function readTar(stream: Readable, caps: TarCaps): Promise<TarFile[]> {
  // An 'error' after our own destroy has no other listener.
  stream.on('error', () => {});
  try {
    return await withDeadline('reading an archive', caps.timeMs, () =>
      new TarReader(new ByteSource(stream), caps).readAll(),
    );
  } finally {
    stream.destroy();
  }
}

class TarReader {
  readonly #source: ByteSource;
  readonly #caps: TarCaps;
  readonly #files: TarFile[] = [];
  /** Folded path to what is there: a later entry must not be, or lie below, an earlier file. */
  readonly #seen = new Map<string, 'file' | 'directory'>();
  #bytesLeft: number;
  #entries = 0;

  constructor(source: ByteSource, caps: TarCaps) {
    this.#source = source;
    this.#caps = caps;
    this.#bytesLeft = caps.totalBytes;
  }

  async readAll(): Promise<TarFile[]> {
    for (;;) {
      const block = await this.#exactly(BLOCK_BYTES);
      if (isZero(block)) break;
      const header = readHeader(block) ?? refuse('a header is malformed');
      await this.#readEntry(header.type === 'x' ? await this.#extended(header) : header);
    }
    if (!isZero(await this.#exactly(BLOCK_BYTES))) refuse('a lone zero block');
    const trailer = await this.#take(MAX_TRAILER_BYTES + 1);
    if (trailer.length > MAX_TRAILER_BYTES || !isZero(trailer)) refuse('bytes after the end');
    return this.#files;
  }

  async #readEntry(header: TarHeader): Promise<void> {
    this.#entries += 1;
    if (this.#entries > this.#caps.entries) refuse(`more than ${this.#caps.entries} entries`);
    if (this.#entries === 1 && looksCompressed(header.name)) refuse('the first name looks compressed');
    if (header.type !== '0' && header.type !== '5') refuse('neither a file nor a directory');
    if ((header.mode & 0o6000) !== 0) refuse('a setuid or setgid bit');
    if (header.type === '5') {
      if (header.size !== 0) refuse('a directory with content');
      if (!isTarget(header.name)) this.#place(header.name, 'directory');
      return;
    }
    const path = this.#place(header.name, 'file');
    if (header.size > this.#bytesLeft) refuse(`more than ${this.#caps.totalBytes} bytes`);
    this.#bytesLeft -= header.size;
    const bytes = await this.#exactly(header.size);
    if (!isZero(await this.#exactly(-header.size & (BLOCK_BYTES - 1)))) refuse('padding that is not zero');
    this.#files.push({ path, bytes, mode: header.mode & 0o777 });
  }

  /** Applies a PAX header to the one that follows it. */
  async #extended(pax: TarHeader): Promise<TarHeader> {
    if (pax.size > MAX_PAX_BYTES) refuse(`an extended header of ${pax.size} bytes`);
    const padding = -pax.size & (BLOCK_BYTES - 1);
    const bytes = await this.#exactly(pax.size + padding);
    const records = readPax(bytes.subarray(0, pax.size)) ?? refuse('an extended header is malformed');
    for (const key of records.keys()) if (!isHarmless(key)) refuse('an extended header of a kind not read');
    const header = readHeader(await this.#exactly(BLOCK_BYTES)) ?? refuse('a header is malformed');
    const size = records.get('size')?.toString('latin1') ?? String(header.size);
    if (!/^\d{1,15}$/.test(size)) refuse('a size that is no number');
    return { ...header, name: records.get('path') ?? header.name, size: Number(size) };
  }

  #place(name: Buffer, kind: 'file' | 'directory'): string {
    const path = checkedPath(name);
    if (typeof path !== 'string') return refuse(path.reason);
    const components = fold(path).split('/');
    if (components.length > this.#caps.depth) refuse(`deeper than ${this.#caps.depth} directories`);
    for (let depth = 1; depth < components.length; depth += 1) {
      const parent = components.slice(0, depth).join('/');
      if (this.#seen.get(parent) === 'file') refuse('an entry below a file');
      this.#seen.set(parent, 'directory');
    }
    const before = this.#seen.get(components.join('/'));
    if (before === 'file' || (before === 'directory' && kind === 'file')) refuse('a name that comes twice');
    this.#seen.set(components.join('/'), kind);
    return path;
  }

  async #exactly(count: number): Promise<Buffer> {
    const bytes = await this.#take(count);
    if (bytes.length === count) return bytes;
    throw new EvaluatorError('engine_error', 'reading an archive: it breaks off');
  }

  async #take(count: number): Promise<Buffer> {
    try {
      return await this.#source.take(count);
    } catch {
      throw new EvaluatorError('engine_error', 'reading an archive: the connection broke');
    }
  }
}

/** Never says a name: that would be text of an agent in a log. */
function refuse(reason: string): never {
  throw new EvaluatorError('archive_refused', `archive: ${reason}`);
}

/** Keys that change neither what an entry is nor what its bytes are; a file capability is a setuid bit. */
function isHarmless(key: string): boolean {
  if (/^(path|size|mtime|atime|ctime|uid|gid|uname|gname)$/.test(key)) return true;
  return key.startsWith('SCHILY.xattr.') && key !== 'SCHILY.xattr.security.capability';
}

function isTarget(name: Buffer): boolean {
  const text = name.toString('latin1');
  return text === './' || text === '.';
}

function fold(path: string): string {
  return path.normalize('NFC').toLowerCase();
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
