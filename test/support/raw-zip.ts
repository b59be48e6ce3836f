import { crc32, deflateRawSync } from 'node:zlib';

/** One entry of a hand-made ZIP. Whatever is set here is written as it is, however wrong. */
export interface RawEntry {
  name: string | Buffer;
  data?: Buffer;
  /** The bytes stored for the entry; by default `data`, deflated when `method` is 8. */
  packed?: Buffer;
  method?: number;
  flags?: number;
  /** Unix mode with type bits; 0 for a system without modes. */
  mode?: number;
  extra?: Buffer;
  /** Written to both headers unless `local` says otherwise. */
  size?: number;
  packedSize?: number;
  crc?: number;
  offset?: number;
  local?: {
    name?: Buffer;
    size?: number;
    packedSize?: number;
    crc?: number;
    method?: number;
    flags?: number;
    extra?: Buffer;
  };
  /** Written behind the data. */
  descriptor?: Buffer;
  /** Bytes put before the local header. */
  gap?: Buffer;
}

/** What is wrong with the archive as a whole. */
export interface RawArchive {
  prefix?: Buffer;
  beforeDirectory?: Buffer;
  afterDirectory?: Buffer;
  suffix?: Buffer;
  comment?: Buffer;
  entries?: number;
  entriesOnDisk?: number;
  disk?: number;
  directorySize?: number;
  directoryOffset?: number;
}

export const MANIFEST: RawEntry = {
  name: 'agent.yaml',
  data: Buffer.from('schema_version: 1\nkind: container\ncommand: [/agent/run]\nenv: []\n'),
};

function u16(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  values.forEach((value, i) => {
    bytes.writeUInt16LE(value, i * 2);
  });
  return bytes;
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => {
    bytes.writeUInt32LE(value, i * 4);
  });
  return bytes;
}

/** A data descriptor with its signature. */
export function descriptor(data: Buffer, packedSize: number): Buffer {
  return u32(0x08074b50, crc32(data), packedSize, data.length);
}

/** Writes a ZIP entry by entry, by APPNOTE.TXT 6.3 without ZIP64. */
export function rawZip(entries: readonly RawEntry[], archive: RawArchive = {}): Buffer {
  const chunks: Buffer[] = [archive.prefix ?? Buffer.alloc(0)];
  const directory: Buffer[] = [];
  let at = chunks[0]?.length ?? 0;
  for (const entry of entries) {
    const data = entry.data ?? Buffer.alloc(0);
    const method = entry.method ?? 0;
    const packed = entry.packed ?? (method === 8 ? deflateRawSync(data) : data);
    const name = Buffer.from(entry.name);
    const flags = entry.flags ?? (name.some((byte) => byte > 0x7f) ? 0x800 : 0);
    const sizes = [
      entry.crc ?? crc32(data),
      entry.packedSize ?? packed.length,
      entry.size ?? data.length,
    ] as const;
    const { local = {}, gap = Buffer.alloc(0), extra = Buffer.alloc(0) } = entry;
    const localName = local.name ?? name;
    const header = Buffer.concat([
      u32(0x04034b50),
      u16(20, local.flags ?? flags, local.method ?? method, 0, 0x21),
      u32(local.crc ?? sizes[0], local.packedSize ?? sizes[1], local.size ?? sizes[2]),
      u16(localName.length, local.extra?.length ?? 0),
      localName,
      local.extra ?? Buffer.alloc(0),
    ]);
    directory.push(
      u32(0x02014b50),
      u16(0x0314, 20, flags, method, 0, 0x21),
      u32(...sizes),
      u16(name.length, extra.length, 0, 0, 0),
      u32(((entry.mode ?? 0o100644) * 0x10000) >>> 0, entry.offset ?? at + gap.length),
      name,
      extra,
    );
    const block = Buffer.concat([gap, header, packed, entry.descriptor ?? Buffer.alloc(0)]);
    chunks.push(block);
    at += block.length;
  }
  chunks.push(archive.beforeDirectory ?? Buffer.alloc(0));
  at += archive.beforeDirectory?.length ?? 0;
  const central = Buffer.concat(directory);
  const comment = archive.comment ?? Buffer.alloc(0);
  chunks.push(
    central,
    archive.afterDirectory ?? Buffer.alloc(0),
    u32(0x06054b50),
    u16(archive.disk ?? 0, 0, archive.entriesOnDisk ?? archive.entries ?? entries.length),
    u16(archive.entries ?? entries.length),
    u32(archive.directorySize ?? central.length, archive.directoryOffset ?? at),
    u16(comment.length),
    comment,
    archive.suffix ?? Buffer.alloc(0),
  );
  return Buffer.concat(chunks);
}
