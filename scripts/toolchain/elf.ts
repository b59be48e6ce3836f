/** What an x86-64 ELF file asks of the machine that starts it. */
export type Elf = {
  /** It names a loader: a dynamic executable. */
  interpreter: boolean;
  /** What other files call it; null for one without. */
  soname: string | null;
  /** Shared libraries that the loader must find, by SONAME. */
  needed: readonly string[];
};

const EM_X86_64 = 62;
const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_INTERP = 3;
const DT_NEEDED = 1n;
const DT_STRTAB = 5n;
const DT_SONAME = 14n;

type Segment = { type: number; offset: number; address: bigint; fileSize: number };

/** Reads the program headers and the dynamic section; null for anything but a whole x86-64 ELF file. */
export function readElf(bytes: Buffer): Elf | null {
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2) return null;
  if (bytes.readUInt16LE(18) !== EM_X86_64) return null;
  const table = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  const count = bytes.readUInt16LE(56);
  if (size < 56 || table + size * count > bytes.length) return null;
  const segments = Array.from({ length: count }, (_, index) => readSegment(bytes, table + size * index));
  if (segments.some(({ offset, fileSize }) => offset + fileSize > bytes.length)) return null;
  return { interpreter: segments.some(({ type }) => type === PT_INTERP), ...readDynamic(bytes, segments) };
}

/** True for an x86-64 executable that asks for no loader, so that it starts in any image. */
export function isStaticElf(bytes: Buffer): boolean {
  const elf = readElf(bytes);
  return elf !== null && !elf.interpreter;
}

function readSegment(bytes: Buffer, at: number): Segment {
  return {
    type: bytes.readUInt32LE(at),
    offset: Number(bytes.readBigUInt64LE(at + 8)),
    address: bytes.readBigUInt64LE(at + 16),
    fileSize: Number(bytes.readBigUInt64LE(at + 32)),
  };
}

function readDynamic(bytes: Buffer, segments: readonly Segment[]): Pick<Elf, 'soname' | 'needed'> {
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  const entries: [tag: bigint, value: bigint][] = [];
  for (let at = 0; dynamic !== undefined && at + 16 <= dynamic.fileSize; at += 16) {
    const tag = bytes.readBigInt64LE(dynamic.offset + at);
    if (tag === 0n) break;
    entries.push([tag, bytes.readBigUInt64LE(dynamic.offset + at + 8)]);
  }
  const strings = offsetOf(segments, entries.find(([tag]) => tag === DT_STRTAB)?.[1] ?? 0n);
  const name = (value: bigint) => {
    const start = strings + Number(value);
    return bytes.toString('latin1', start, bytes.indexOf(0, start));
  };
  const soname = entries.find(([tag]) => tag === DT_SONAME);
  return {
    soname: soname === undefined ? null : name(soname[1]),
    needed: entries.filter(([tag]) => tag === DT_NEEDED).map(([, value]) => name(value)),
  };
}

/** Where in the file an address of the loaded image lies. */
function offsetOf(segments: readonly Segment[], address: bigint): number {
  const segment = segments.find(
    ({ type, address: start, fileSize }) =>
      type === PT_LOAD && address >= start && address < start + BigInt(fileSize),
  );
  return segment === undefined ? 0 : segment.offset + Number(address - segment.address);
}
