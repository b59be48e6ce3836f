/** The few DER forms that @peculiar/x509 has no builder for (X.690). */

function length(n: number): Buffer {
  if (n < 0x80) return Buffer.from([n]);
  const bytes = Buffer.from(n.toString(16).padStart(n > 0xffff ? 6 : n > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}

function tlv(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([tag]), length(content.length), content]);
}

/** SEQUENCE of already encoded parts. */
export function sequence(...parts: Uint8Array[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

/** OCTET STRING. */
export function octetString(content: Uint8Array): Buffer {
  return tlv(0x04, content);
}

/** INTEGER of 0 to 65535, in its shortest form. */
export function integer(value: number): Buffer {
  const bytes =
    value > 0x7fff
      ? [0, value >> 8, value & 255]
      : value > 0xff
        ? [value >> 8, value & 255]
        : value > 0x7f
          ? [0, value]
          : [value];
  return tlv(0x02, Buffer.from(bytes));
}

/** ENUMERATED of 0 to 127. */
export function enumerated(value: number): Buffer {
  return tlv(0x0a, Buffer.from([value]));
}

/** OBJECT IDENTIFIER from its dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const groups = [arc & 0x7f];
    for (let high = arc >>> 7; high > 0; high >>>= 7) groups.unshift(0x80 | (high & 0x7f));
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}
