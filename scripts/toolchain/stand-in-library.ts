/** Bytes of zero for what is read as data: more than any of C++'s virtual tables that are asked for. */
const DATA_BYTES = 4096;
const HEADER_BYTES = 64;
const SEGMENT_BYTES = 56;
const SYMBOL_BYTES = 24;
const RELATIVE_BYTES = 24;
/** The instruction that ends a process which comes here. */
const UD2 = Buffer.from([0x0f, 0x0b]);
/** `lea rax, [rip + …]`, without the distance. */
const GET_PLACE = Buffer.from([0x48, 0x8d, 0x05]);
const RET = 0xc3;
const PAGE = 4096;

const PT = { load: 1, dynamic: 2, gnuStack: 0x6474e551 } as const;
const DT = {
  hash: 4,
  strtab: 5,
  symtab: 6,
  rela: 7,
  relasz: 8,
  relaent: 9,
  strsz: 10,
  syment: 11,
  soname: 14,
};
const R_X86_64_RELATIVE = 8n;
const TYPE_INFO = /^_ZTI/;
const DATA = /^_ZT[IV]/;

/**
 * An x86-64 shared object that has the names of another, and nothing behind them: it can be loaded in its place, and a
 * process that calls one of its functions ends at once. C++'s type information has its name, which loading may read.
 * @param places functions among them that are called on loading and return a reference to a pointer: to one of theirs,
 * which is null.
 */
export function standInLibrary(
  soname: string,
  names: readonly string[],
  places: ReadonlySet<string>,
): Buffer {
  const sorted = [...new Set(names)].sort();
  const strings = new Strings();
  const sonameAt = strings.add(soname);
  const symbols = sorted.map((name) => ({ name, at: strings.add(name) }));
  const types = symbols.filter(({ name }) => TYPE_INFO.test(name));
  const typeNames = new Map(types.map(({ name }) => [name, strings.add(name.slice('_ZTI'.length))]));

  const place = new Layout(HEADER_BYTES + 4 * SEGMENT_BYTES);
  const symtab = place.take((symbols.length + 1) * SYMBOL_BYTES);
  const strtab = place.take(strings.size);
  const hash = place.take((2 + 1 + symbols.length + 1) * 4);
  const rela = place.take(types.length * RELATIVE_BYTES);
  const trap = place.take(UD2.length);
  const getPlace = place.take(GET_PLACE.length + 5);
  const writable = place.nextPage();
  const dynamic = place.take((Object.keys(DT).length + 1) * 16);
  const typeInfo = place.take(types.length * 16);
  const zeros = place.take(DATA_BYTES);
  const pointer = place.take(8);
  const bytes = Buffer.alloc(place.end);

  const addressOf = (name: string) => {
    if (!DATA.test(name)) return places.has(name) ? getPlace : trap;
    return typeNames.has(name) ? typeInfo + types.findIndex((one) => one.name === name) * 16 : zeros;
  };
  symbols.forEach(({ name, at }, index) => {
    const symbol = symtab + (index + 1) * SYMBOL_BYTES;
    bytes.writeUInt32LE(at, symbol);
    // STB_GLOBAL, and STT_OBJECT or STT_FUNC; any section that is not "undefined".
    bytes.writeUInt8(DATA.test(name) ? 0x11 : 0x12, symbol + 4);
    bytes.writeUInt16LE(1, symbol + 6);
    bytes.writeBigUInt64LE(BigInt(addressOf(name)), symbol + 8);
  });
  types.forEach(({ name }, index) => {
    const relocation = rela + index * RELATIVE_BYTES;
    bytes.writeBigUInt64LE(BigInt(typeInfo + index * 16 + 8), relocation);
    bytes.writeBigUInt64LE(R_X86_64_RELATIVE, relocation + 8);
    bytes.writeBigUInt64LE(BigInt(strtab + (typeNames.get(name) ?? 0)), relocation + 16);
  });
  strings.bytes().copy(bytes, strtab);
  UD2.copy(bytes, trap);
  GET_PLACE.copy(bytes, getPlace);
  const next = getPlace + GET_PLACE.length + 4;
  bytes.writeInt32LE(pointer - next, next - 4);
  bytes.writeUInt8(RET, next);
  writeHash(bytes, hash, symbols.length + 1);
  const entries = { hash, strtab, symtab, rela, relasz: types.length * RELATIVE_BYTES };
  const sizes = { relaent: RELATIVE_BYTES, strsz: strings.size, syment: SYMBOL_BYTES, soname: sonameAt };
  Object.entries({ ...entries, ...sizes }).forEach(([name, value], index) => {
    bytes.writeBigUInt64LE(BigInt(DT[name as keyof typeof DT]), dynamic + index * 16);
    bytes.writeBigUInt64LE(BigInt(value), dynamic + index * 16 + 8);
  });
  const dynamicBytes = typeInfo - dynamic;
  writeHeader(bytes, [
    { type: PT.load, flags: 5, at: 0, size: writable },
    { type: PT.load, flags: 6, at: writable, size: place.end - writable },
    { type: PT.dynamic, flags: 6, at: dynamic, size: dynamicBytes },
    { type: PT.gnuStack, flags: 6, at: 0, size: 0 },
  ]);
  return bytes;
}

/** One bucket, every symbol in its chain: there are few. */
function writeHash(bytes: Buffer, at: number, symbols: number): void {
  const chain = Array.from({ length: symbols }, (_, index) =>
    index + 1 < symbols && index > 0 ? index + 1 : 0,
  );
  for (const [index, word] of [1, symbols, symbols > 1 ? 1 : 0, ...chain].entries())
    bytes.writeUInt32LE(word, at + index * 4);
}

function writeHeader(
  bytes: Buffer,
  segments: readonly { type: number; flags: number; at: number; size: number }[],
): void {
  // 64 bits, little endian, version 1; a shared object for x86-64.
  Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]).copy(bytes);
  bytes.writeUInt16LE(3, 16);
  bytes.writeUInt16LE(62, 18);
  bytes.writeUInt32LE(1, 20);
  bytes.writeBigUInt64LE(BigInt(HEADER_BYTES), 32);
  bytes.writeUInt16LE(HEADER_BYTES, 52);
  bytes.writeUInt16LE(SEGMENT_BYTES, 54);
  bytes.writeUInt16LE(segments.length, 56);
  segments.forEach(({ type, flags, at, size }, index) => {
    const entry = HEADER_BYTES + index * SEGMENT_BYTES;
    bytes.writeUInt32LE(type, entry);
    bytes.writeUInt32LE(flags, entry + 4);
    for (const [field, word] of [at, at, at, size, size, PAGE].entries())
      bytes.writeBigUInt64LE(BigInt(word), entry + 8 + field * 8);
  });
}

/** Offsets in the file, which are its addresses too. */
class Layout {
  end: number;

  constructor(start: number) {
    this.end = start;
  }

  take(size: number): number {
    const at = Math.ceil(this.end / 16) * 16;
    this.end = at + size;
    return at;
  }

  nextPage(): number {
    this.end = Math.ceil(this.end / PAGE) * PAGE;
    return this.end;
  }
}

class Strings {
  readonly #parts: Buffer[] = [Buffer.from([0])];
  size = 1;

  /** Where the string begins. */
  add(text: string): number {
    const part = Buffer.from(`${text}\0`, 'latin1');
    const at = this.size;
    this.#parts.push(part);
    this.size += part.length;
    return at;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
