import { inflateRawSync, unzipSync } from 'node:zlib';

const MAX_OUT = 262_144;

/** Text or bytes as Latin-1, both ways: bytes of a literal are its code units. */
const bytesOf = (text: string) => Buffer.from(text, 'latin1');
const asText = (bytes: Buffer) => {
  const utf8 = bytes.toString('utf8');
  return utf8.includes('\uFFFD') ? bytes.toString('latin1') : utf8;
};

export function fromBase64(text: string): string | null {
  const compact = text.replaceAll(/\s/g, '');
  if (compact.length < 2 || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(compact)) return null;
  return asText(Buffer.from(compact, 'base64'));
}

export function fromHex(text: string): string | null {
  const compact = text.replaceAll(/[\s:]/g, '');
  return /^(?:[0-9a-fA-F]{2})+$/.test(compact) ? asText(Buffer.from(compact, 'hex')) : null;
}

export function fromBase32(text: string): string | null {
  const compact = text.replaceAll(/[\s=]/g, '').toUpperCase();
  if (!/^[A-Z2-7]+$/.test(compact)) return null;
  let bits = '';
  for (const c of compact) bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0');
  const bytes = bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? [];
  return asText(Buffer.from(bytes));
}

export function rot13(text: string): string {
  return text.replaceAll(/[a-z]/gi, (c) => {
    const base = c <= 'Z' ? 65 : 97;
    return String.fromCharCode(((c.charCodeAt(0) - base + 13) % 26) + base);
  });
}

/** zlib, gzip or raw deflate, bounded. */
export function inflate(text: string): string | null {
  const options = { maxOutputLength: MAX_OUT };
  for (const open of [unzipSync, inflateRawSync]) {
    try {
      return asText(open(bytesOf(text), options));
    } catch {
      // The other form, or none.
    }
  }
  return null;
}

/** Mostly printable: text that a person could have meant. */
function isReadable(text: string): boolean {
  if (text.length < 6) return false;
  const odd = text.match(/[^\x20-\x7e\s]/g)?.length ?? 0;
  return odd / text.length < 0.1;
}

/** What a literal says once decoded, when that is readable: each layer of base64 and hex, outermost first. */
export function decodedLayers(text: string): string[] {
  const layers: string[] = [];
  for (let current = text; layers.length < 3; ) {
    if (current.length < 12) break;
    const next = fromHex(current) ?? fromBase64(current);
    if (next === null || !isReadable(next)) break;
    layers.push(next);
    current = next;
  }
  return layers;
}
