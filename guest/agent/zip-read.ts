import { constants, crc32, inflateRawSync } from 'node:zlib';
import { type Entry, fromBufferPromise } from 'yauzl';
import { decodeEntryName, NameRegistry } from './entry-name.ts';
import { refused, shownName } from './refuse.ts';
import type { AgentFile } from './types.ts';
import {
  type PlacedEntry,
  readEndRecord,
  UNICODE_PATH_EXTRA,
  verifyContiguous,
  verifyDirectorySize,
  verifyLocalHeader,
} from './zip-layout.ts';

/** What of an archive is read at the most, in bytes. */
export interface ZipLimits {
  packedBytes: number;
  unpackedBytes: number;
  /** Unpacked to packed, of one entry; Infinity where the sum is bound enough. */
  ratio: number;
  /** Files and directories: every one is a header of a tar. */
  paths: number;
}

const STORED = 0;
const DEFLATED = 8;
/** Compression level, data descriptor, UTF-8 name; every other flag (encryption above all) is refused. */
const KNOWN_FLAGS = 0x0806 | 0x0008;
const UTF8_NAME = 0x0800;
const ZIP64_EXTRA = 0x0001;

const FORMAT_BITS = 0o170000;
const REGULAR = 0o100000;
const DIRECTORY = 0o040000;
const SPECIAL_BITS = 0o7000;

function verifyEntry(entry: Entry, name: string, ratio: number): void {
  const shown = shownName(entry.fileNameRaw);
  if ((entry.generalPurposeBitFlag & ~KNOWN_FLAGS) !== 0) {
    throw refused(shown, 'encrypted, or written with a ZIP feature that is not read');
  }
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw refused(shown, `compression method ${entry.compressionMethod}; stored and deflated are read`);
  }
  if (entry.extraFields.some(({ id }) => id === ZIP64_EXTRA || id === UNICODE_PATH_EXTRA)) {
    throw refused(shown, 'an extra field that changes its name or sizes');
  }
  if ((entry.generalPurposeBitFlag & UTF8_NAME) === 0 && entry.fileNameRaw.some((byte) => byte > 0x7f)) {
    throw refused(shown, 'a name beyond ASCII that is not marked as UTF-8; rename it');
  }
  const mode = entry.externalFileAttributes >>> 16;
  const format = mode & FORMAT_BITS;
  if (format !== 0 && format !== (name.endsWith('/') ? DIRECTORY : REGULAR)) {
    throw refused(shown, 'not a regular file or a directory (links and devices are refused)');
  }
  if ((mode & SPECIAL_BITS) !== 0) throw refused(shown, 'setuid, setgid or sticky bit');
  if (name.endsWith('/') && (entry.uncompressedSize !== 0 || entry.compressedSize > 2)) {
    throw refused(shown, 'a directory with data');
  }
  if (entry.uncompressedSize > ratio * entry.compressedSize) {
    throw refused(shown, `compressed by more than ${ratio}:1`);
  }
}

/** Inflates one entry; what comes out is measured, never believed. */
function readData(zip: Buffer, { entry, header }: PlacedEntry): Buffer {
  const shown = shownName(entry.fileNameRaw);
  const packed = zip.subarray(header.fileDataStart, header.fileDataStart + entry.compressedSize);
  let bytes = packed;
  if (entry.compressionMethod === DEFLATED) {
    try {
      const inflated = inflateRawSync(packed, {
        maxOutputLength: Math.max(1, entry.uncompressedSize),
        finishFlush: constants.Z_FINISH,
        info: true,
      }) as unknown as { buffer: Buffer; engine: { bytesWritten: number } };
      if (inflated.engine.bytesWritten !== packed.length) throw new Error('bytes after the deflate stream');
      bytes = inflated.buffer;
    } catch (cause) {
      throw refused(shown, 'its data is broken, or longer than the central directory says', { cause });
    }
  }
  if (bytes.length !== entry.uncompressedSize || crc32(bytes) !== entry.crc32) {
    throw refused(shown, 'its data differs in size or checksum from the central directory');
  }
  return Buffer.from(bytes);
}

async function placeEntries(zip: Buffer): Promise<PlacedEntry[]> {
  const directory = readEndRecord(zip);
  const placed: PlacedEntry[] = [];
  try {
    // Sizes are measured in readData; the reader's own check would speak before the entry can be named.
    const options = { lazyEntries: true, decodeStrings: false, validateEntrySizes: false };
    const file = await fromBufferPromise(zip, options);
    for await (const entry of file.eachEntry()) {
      placed.push({ entry, header: await file.readLocalFileHeaderPromise(entry, { minimal: false }) });
    }
  } catch (cause) {
    throw refused('archive', `unreadable: ${(cause as Error).message}`, { cause });
  }
  verifyDirectorySize(
    directory,
    placed.map(({ entry }) => entry),
  );
  for (const one of placed) verifyLocalHeader(one);
  verifyContiguous(zip, directory, placed);
  return placed;
}

/**
 * Reads a ZIP of regular files that every reader reads alike, in the archive's order: every byte of it is
 * accounted for, every name is checked, every size is measured (spec/08).
 * @throws agent_package_refused, naming the entry.
 */
export async function readZip(zip: Buffer, limits: ZipLimits): Promise<AgentFile[]> {
  if (zip.length > limits.packedBytes) {
    throw refused('archive', `${zip.length} bytes packed, at most ${limits.packedBytes} are read`);
  }
  const placed = await placeEntries(zip);
  const registry = new NameRegistry(limits.paths);
  const files: AgentFile[] = [];
  let unpacked = 0;
  for (const one of placed) {
    const name = decodeEntryName(one.entry.fileNameRaw);
    registry.add(name);
    verifyEntry(one.entry, name, limits.ratio);
    unpacked += one.entry.uncompressedSize;
    if (unpacked > limits.unpackedBytes) {
      throw refused('archive', `more than ${limits.unpackedBytes} bytes unpacked`);
    }
    const bytes = readData(zip, one);
    if (name.endsWith('/')) continue;
    const executable = ((one.entry.externalFileAttributes >>> 16) & 0o111) !== 0;
    files.push({ path: name, bytes, executable });
  }
  return files;
}
