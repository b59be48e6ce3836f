/** What the dynamic symbol table of an x86-64 shared object offers to others, and what it asks of them. */
export type ElfSymbols = {
  defined: readonly string[];
  /** Asked for, and not weakly. */
  open: readonly string[];
};

const SHT_DYNSYM = 11;
const SYMBOL_BYTES = 24;
const STB_WEAK = 2;
const SHN_UNDEF = 0;

type Section = { type: number; offset: number; size: number; link: number };

/** Reads the symbols of a file that `readElf` could read; none where its section headers were stripped. */
export function readSymbols(bytes: Buffer): ElfSymbols {
  const sections = readSections(bytes);
  const table = sections.find(({ type }) => type === SHT_DYNSYM);
  const strings = sections[table?.link ?? -1];
  const defined: string[] = [];
  const open: string[] = [];
  if (table === undefined || strings === undefined) return { defined, open };
  const text = (offset: number) => {
    const start = strings.offset + offset;
    return bytes.toString('latin1', start, bytes.indexOf(0, start));
  };
  for (let index = 1; index < table.size / SYMBOL_BYTES; index++) {
    const at = table.offset + index * SYMBOL_BYTES;
    const name = text(bytes.readUInt32LE(at));
    const isWeak = bytes.readUInt8(at + 4) >> 4 === STB_WEAK;
    if (bytes.readUInt16LE(at + 6) !== SHN_UNDEF) defined.push(name);
    else if (!isWeak) open.push(name);
  }
  return { defined, open };
}

function readSections(bytes: Buffer): Section[] {
  const table = Number(bytes.readBigUInt64LE(40));
  const size = bytes.readUInt16LE(58);
  return Array.from({ length: bytes.readUInt16LE(60) }, (_, index) => {
    const at = table + index * size;
    return {
      type: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 24)),
      size: Number(bytes.readBigUInt64LE(at + 32)),
      link: bytes.readUInt32LE(at + 40),
    };
  });
}
