import type { Entry, LocalFileHeader } from 'yauzl';
import { refused, shownName } from './refuse.ts';

const END_BYTES = 22;
const END_SIGNATURE = 0x06054b50;
const ZIP64_LOCATOR_BYTES = 20;
const ZIP64_LOCATOR_SIGNATURE = 0x07064b50;
const CENTRAL_HEADER_BYTES = 46;
const DESCRIPTOR_SIGNATURE = 0x08074b50;
const HAS_DESCRIPTOR = 0x0008;

/** Where the central directory lies. */
export interface CentralDirectory {
  offset: number;
  size: number;
  entries: number;
}

/** An entry with the place of its data. */
export interface PlacedEntry {
  entry: Entry;
  header: LocalFileHeader;
}

/**
 * Reads the end record of a ZIP that ends with it: no comment, no second disk, no ZIP64, and a central
 * directory that reaches right up to it. Readers disagree about every other ZIP.
 * @throws agent_package_refused.
 */
export function readEndRecord(zip: Buffer): CentralDirectory {
  const end = zip.length - END_BYTES;
  if (end < 0 || zip.readUInt32LE(end) !== END_SIGNATURE) {
    throw refused(
      'archive',
      'not a ZIP, or a comment or other bytes follow its end record; write it without',
    );
  }
  const entries = zip.readUInt16LE(end + 10);
  const size = zip.readUInt32LE(end + 12);
  const offset = zip.readUInt32LE(end + 16);
  if (zip.readUInt32LE(end + 4) !== 0 || zip.readUInt16LE(end + 8) !== entries) {
    throw refused('archive', 'a ZIP of several disks');
  }
  if (zip.readUInt16LE(end + 20) !== 0 || offset + size !== end) {
    throw refused('archive', 'its central directory does not end where the end record begins');
  }
  const locator = end - ZIP64_LOCATOR_BYTES;
  if (locator >= 0 && zip.readUInt32LE(locator) === ZIP64_LOCATOR_SIGNATURE) {
    throw refused('archive', 'ZIP64 is not read');
  }
  return { offset, size, entries };
}

/** The directory's entries fill it, and there are as many as it says. @throws agent_package_refused. */
export function verifyDirectorySize(directory: CentralDirectory, entries: readonly Entry[]): void {
  const size = entries.reduce(
    (sum, entry) =>
      sum + CENTRAL_HEADER_BYTES + entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength,
    0,
  );
  if (size !== directory.size || entries.length !== directory.entries) {
    throw refused('archive', 'its central directory has another size than its entries');
  }
}

/** Renames an entry, for readers that heed it. */
export const UNICODE_PATH_EXTRA = 0x7075;

/** The ids of the fields in a header's extra part; one that is cut short counts too. */
function extraIds(extra: Buffer): number[] {
  const ids: number[] = [];
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2))
    ids.push(extra.readUInt16LE(at));
  return ids;
}

/** The local header says what the central directory says. @throws agent_package_refused. */
export function verifyLocalHeader({ entry, header }: PlacedEntry): void {
  const same =
    header.fileName.equals(entry.fileNameRaw) &&
    !extraIds(header.extraField).includes(UNICODE_PATH_EXTRA) &&
    header.compressionMethod === entry.compressionMethod &&
    header.generalPurposeBitFlag === entry.generalPurposeBitFlag;
  const sizes = [header.crc32, header.compressedSize, header.uncompressedSize];
  const expected = [entry.crc32, entry.compressedSize, entry.uncompressedSize];
  const deferred = (entry.generalPurposeBitFlag & HAS_DESCRIPTOR) !== 0;
  const sizesAgree = sizes.every((value, i) => value === expected[i] || (deferred && value === 0));
  if (!same || !sizesAgree) {
    throw refused(shownName(entry.fileNameRaw), 'its local header differs from the central directory');
  }
}

/** Length of the data descriptor that starts at `at`, 0 when there is none to expect, null when it is wrong. */
function descriptorLength(zip: Buffer, at: number, entry: Entry): number | null {
  if ((entry.generalPurposeBitFlag & HAS_DESCRIPTOR) === 0) return 0;
  if (at + 12 > zip.length) return null;
  const signed = zip.readUInt32LE(at) === DESCRIPTOR_SIGNATURE && at + 16 <= zip.length;
  const fields = signed ? at + 4 : at;
  const right =
    zip.readUInt32LE(fields) === entry.crc32 &&
    zip.readUInt32LE(fields + 4) === entry.compressedSize &&
    zip.readUInt32LE(fields + 8) === entry.uncompressedSize;
  return right ? fields + 12 - at : null;
}

/**
 * Headers, data and descriptors of all entries follow each other from the first byte up to the central
 * directory: nothing before, between, after, and no byte belongs to two entries.
 * @throws agent_package_refused.
 */
export function verifyContiguous(
  zip: Buffer,
  directory: CentralDirectory,
  placed: readonly PlacedEntry[],
): void {
  const inOrder = [...placed].sort(
    (a, b) => a.entry.relativeOffsetOfLocalHeader - b.entry.relativeOffsetOfLocalHeader,
  );
  let at = 0;
  for (const { entry, header } of inOrder) {
    const shown = shownName(entry.fileNameRaw);
    if (entry.relativeOffsetOfLocalHeader !== at) {
      throw refused(shown, 'bytes before it belong to no entry, or to two');
    }
    const dataEnd = header.fileDataStart + entry.compressedSize;
    const descriptor = descriptorLength(zip, dataEnd, entry);
    if (descriptor === null) throw refused(shown, 'its data descriptor differs from the central directory');
    at = dataEnd + descriptor;
  }
  if (at !== directory.offset)
    throw refused('archive', 'bytes before the central directory belong to no entry');
}
