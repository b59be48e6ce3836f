const NAME = [0, 100] as const;
const MODE = [100, 108] as const;
const UID = [108, 116] as const;
const GID = [116, 124] as const;
const SIZE = [124, 136] as const;
const MTIME = [136, 148] as const;
const CHECKSUM = [148, 156] as const;
const TYPE = 156;
const MAGIC = [257, 263] as const;
const PREFIX = [345, 500] as const;

type Range = readonly [number, number];

export interface TarHeader {
  name: Buffer;
  mode: number;
  /** 0 where the field is another dialect's number; a PAX record may say more. */
  uid: number;
  gid: number;
  /** Seconds since 1970. */
  mtime: number;
  size: number;
  type: string;
}

/** Reads one 512-byte ustar header; null when it is none, or uses another dialect's numbers. */
export function readHeader(block: Buffer): TarHeader | null {
  const [from, to] = CHECKSUM;
  // The sum is taken with its own field as spaces.
  const sum = block.reduce((total, byte, at) => total + (at >= from && at < to ? 0x20 : byte), 0);
  const mode = octal(block, MODE);
  const size = octal(block, SIZE);
  const magic = block.toString('latin1', ...MAGIC);
  if (octal(block, CHECKSUM) !== sum || magic !== 'ustar\0' || mode === null || size === null) return null;
  const prefix = text(block, PREFIX);
  const name = text(block, NAME);
  if (prefix === null || name === null) return null;
  return {
    name: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    mode,
    uid: octal(block, UID) ?? 0,
    gid: octal(block, GID) ?? 0,
    mtime: octal(block, MTIME) ?? 0,
    size,
    type: String.fromCharCode(block[TYPE] ?? 0),
  };
}

/** The records of a PAX extended header; null when one is malformed or comes twice. */
export function readPax(bytes: Buffer): Map<string, Buffer> | null {
  const records = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const digits = bytes.toString('latin1', at, space);
    const end = at + Number(digits);
    const equals = bytes.indexOf(0x3d, space);
    if (space < 0 || !/^[1-9]\d{0,5}$/.test(digits) || end > bytes.length || bytes[end - 1] !== 0x0a)
      return null;
    if (equals < 0 || equals >= end) return null;
    const key = bytes.toString('utf8', space + 1, equals);
    if (records.has(key)) return null;
    records.set(key, bytes.subarray(equals + 1, end - 1));
    at = end;
  }
  return records;
}

/** A NUL-padded field; null when something hides behind the NUL. */
function text(block: Buffer, [from, to]: Range): Buffer | null {
  const field = block.subarray(from, to);
  const end = field.indexOf(0);
  if (end < 0) return field;
  return field.subarray(end).every((byte) => byte === 0) ? field.subarray(0, end) : null;
}

function octal(block: Buffer, range: Range): number | null {
  const digits = block
    .toString('latin1', ...range)
    .replace(/[\0 ]+$/, '')
    .trimStart();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : null;
}
