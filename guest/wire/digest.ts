import { createHash } from 'node:crypto';
import { encodeCanonical } from './canonical.ts';

/** SHA-256 of bytes (or of a UTF-8 string) as 64 lower-case hex digits. */
export function sha256Hex(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex');
}

/** `digest(doc)` of spec/01: SHA-256 over the canonical bytes, as hex. */
export function digest(doc: unknown): string {
  return sha256Hex(encodeCanonical(doc));
}
