import { Readable } from 'node:stream';
import { ByteSource } from './byte-source.ts';
import { encodeHeader, endOfArchive, padding } from './tar-encode.ts';
import { readHeader, readPax, type TarHeader } from './tar-header.ts';

const BLOCK_BYTES = 512;
const CHUNK_BYTES = 256 * 1024;
const MAX_PAX_BYTES = 16 * 1024;
const MAX_COMPONENT_BYTES = 255;
const MAX_PATH_BYTES = 4096;
const SLASH = 0x2f;
/** Hard and symbolic links, character and block devices, FIFOs: left out. They have no content. */
const LEFT_OUT = /^[12346]$/;

/** What may still go through; counted down, so that several archives can share it. */
export interface FilterBudget {
  /** Of the content of files. A hole of a sparse file counts in full. */
  bytes: number;
  /** Members, left out ones too. */
  entries: number;
}

export interface FilterRules {
  budget: FilterBudget;
  /** Components of a path, below its first one. */
  depth: number;
  /** The first component of every name that comes in. */
  root: string;
  /** What stands in its place in every name that goes out: relative, POSIX. */
  newRoot: string;
  /** Whether the directory itself, with its permissions, goes out before what is in it; kept unless said. */
  top?: 'left_out';
}

/** `bytes`: more than the budget. `refused`: too many members, too deep or malformed. `broken`: it broke off. */
export type FilterEnd = 'whole' | 'bytes' | 'refused' | 'broken';

/** A filtered archive: `end` settles when `tar` has ended, and says whether that is all of it. */
export interface FilteredTar {
  tar: Readable;
  end: Promise<FilterEnd>;
}

/**
 * Lets regular files and directories of a tar stream through, and nothing else: links, devices and FIFOs are
 * left out, and a file of several names keeps the first. Owner, time and permissions stay; setuid, setgid and
 * sticky bits and extended attributes do not. Holds one chunk at a time. `tar` never fails: it ends early, and
 * `end` says why, so that an upload of it ends too. `source` is destroyed at the end in any case.
 */
export function filterTar(source: Readable, rules: FilterRules): FilteredTar {
  // An 'error' after our own destroy has no other listener.
  source.on('error', () => {});
  const end = Promise.withResolvers<FilterEnd>();
  const tar = Readable.from(filtered(source, rules, end.resolve), { objectMode: false });
  // Destroyed before it was read, the generator would never run.
  tar.once('close', () => {
    end.resolve('broken');
    source.destroy();
  });
  return { tar, end: end.promise };
}

async function* filtered(
  source: Readable,
  rules: FilterRules,
  settle: (end: FilterEnd) => void,
): AsyncGenerator<Buffer> {
  try {
    yield* new TarFilter(new ByteSource(source), rules).members();
    yield endOfArchive();
    settle('whole');
  } catch (error) {
    settle(error instanceof Stop ? error.end : 'broken');
  }
}

class Stop extends Error {
  readonly end: FilterEnd;

  constructor(end: FilterEnd) {
    super(end);
    this.end = end;
  }
}

class TarFilter {
  readonly #source: ByteSource;
  readonly #rules: FilterRules;
  readonly #root: Buffer;

  constructor(source: ByteSource, rules: FilterRules) {
    this.#source = source;
    this.#rules = rules;
    this.#root = Buffer.from(rules.root);
  }

  async *members(): AsyncGenerator<Buffer> {
    for (;;) {
      const block = await this.#exactly(BLOCK_BYTES);
      if (block.every((byte) => byte === 0)) return;
      const plain = readHeader(block) ?? stop('refused');
      const header = plain.type === 'x' ? await this.#extended(plain) : plain;
      if (--this.#rules.budget.entries < 0) stop('refused');
      if (LEFT_OUT.test(header.type) && header.size === 0) continue;
      yield* this.#member(header);
    }
  }

  async *#member(header: TarHeader): AsyncGenerator<Buffer> {
    const { type, uid, gid, mtime } = header;
    if (type !== '0' && type !== '5') stop('refused');
    const size = type === '5' ? 0 : header.size;
    if (size !== header.size) stop('refused');
    const { budget } = this.#rules;
    if (size > budget.bytes) stop('bytes');
    budget.bytes -= size;
    const name = this.#renamed(header.name, type);
    if (this.#rules.top === 'left_out' && name.toString() === `${this.#rules.newRoot}/`) return;
    yield encodeHeader({ name, type, mode: header.mode & 0o777, uid, gid, mtime, size });
    for (let left = size; left > 0; ) {
      const chunk = await this.#exactly(Math.min(left, CHUNK_BYTES));
      left -= chunk.length;
      yield chunk;
    }
    yield await this.#exactly(padding(size).length);
  }

  /** The name below the new root; a name that leads anywhere else is refused. */
  #renamed(given: Buffer, type: '0' | '5'): Buffer {
    const name = type === '5' && given.at(-1) === SLASH ? given.subarray(0, -1) : given;
    const parts = split(name);
    if (name.length > MAX_PATH_BYTES || parts[0]?.equals(this.#root) !== true) stop('refused');
    if (parts.length - 1 > this.#rules.depth || !parts.every(isComponent)) stop('refused');
    const below = name.subarray(this.#root.length);
    return Buffer.concat([Buffer.from(this.#rules.newRoot), below, Buffer.from(type === '5' ? '/' : '')]);
  }

  /** Applies a PAX header to the one that follows it; of its records only these say what is let through. */
  async #extended(pax: TarHeader): Promise<TarHeader> {
    if (pax.size > MAX_PAX_BYTES) stop('refused');
    const bytes = await this.#exactly(pax.size + padding(pax.size).length);
    const records = readPax(bytes.subarray(0, pax.size)) ?? stop('refused');
    if ([...records.keys()].some((key) => key.startsWith('GNU.'))) stop('refused');
    const header = readHeader(await this.#exactly(BLOCK_BYTES)) ?? stop('refused');
    const number = (key: 'size' | 'uid' | 'gid' | 'mtime') => {
      const text = records.get(key)?.toString('latin1');
      if (text === undefined) return header[key];
      // Times before 1970 and fractions are no reason to refuse a file.
      if (key === 'mtime') return Math.max(0, Math.floor(Number(text)) || 0);
      return /^\d{1,15}$/.test(text) ? Number(text) : stop('refused');
    };
    return {
      ...header,
      name: records.get('path') ?? header.name,
      size: number('size'),
      uid: number('uid'),
      gid: number('gid'),
      mtime: number('mtime'),
    };
  }

  async #exactly(count: number): Promise<Buffer> {
    const bytes = await this.#source.take(count);
    return bytes.length === count ? bytes : stop('broken');
  }
}

function stop(end: FilterEnd): never {
  throw new Stop(end);
}

function split(name: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = name.indexOf(SLASH); at !== -1; at = name.indexOf(SLASH, from)) {
    parts.push(name.subarray(from, at));
    from = at + 1;
  }
  return [...parts, name.subarray(from)];
}

function isComponent(part: Buffer): boolean {
  const text = part.toString('latin1');
  return (
    text !== '' && text !== '.' && text !== '..' && !part.includes(0) && part.length <= MAX_COMPONENT_BYTES
  );
}
