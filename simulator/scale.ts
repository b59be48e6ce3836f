/** The part of the SCALE codec that a dstack attestation of version 0 is written in. */

/** Little-endian u32. */
export function u32le(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Compact integer below 2^30: two low bits say how many bytes follow. */
export function compact(value: number): Buffer {
  if (value < 1 << 6) return Buffer.from([value << 2]);
  if (value < 1 << 14) return Buffer.from([((value << 2) | 1) & 0xff, value >> 6]);
  if (value < 1 << 30) return u32le(value * 4 + 2);
  throw new RangeError(`SCALE: a length of ${value} is not supported`);
}

/** Bytes, or a string's UTF-8, with their length before them. */
export function scaleBytes(value: Uint8Array | string): Buffer {
  const bytes = Buffer.from(value as Uint8Array);
  return Buffer.concat([compact(bytes.length), bytes]);
}

/** Already encoded items with their number before them. */
export function scaleVec(items: readonly Uint8Array[]): Buffer {
  return Buffer.concat([compact(items.length), ...items]);
}
