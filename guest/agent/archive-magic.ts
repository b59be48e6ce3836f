/** First bytes of the formats that could hide files from the reviewer of a package (spec/08). */
const MAGIC: readonly (readonly [format: string, offset: number, hex: string])[] = [
  ['zip', 0, '504b0304'],
  ['zip', 0, '504b0506'],
  ['zip', 0, '504b0708'],
  ['gzip', 0, '1f8b'],
  ['bzip2', 0, '425a68'],
  ['xz', 0, 'fd377a585a00'],
  ['zstd', 0, '28b52ffd'],
  ['lz4', 0, '04224d18'],
  ['lzip', 0, '4c5a4950'],
  ['compress', 0, '1f9d'],
  ['7z', 0, '377abcaf271c'],
  ['rar', 0, '526172211a07'],
  ['ar', 0, '213c617263683e0a'],
  ['cab', 0, '4d534346'],
  ['cpio', 0, '303730373031'],
  ['cpio', 0, '303730373032'],
  ['tar', 257, '7573746172'],
  ['squashfs', 0, '68737173'],
];

const ZIP_END = Buffer.from('504b0506', 'hex');
const ZIP_END_BYTES = 22;

/** A ZIP may follow any text (a self-extracting script, a zipapp): its end record tells. */
function endsAsZip(bytes: Buffer): boolean {
  for (
    let at = bytes.lastIndexOf(ZIP_END);
    at >= 0;
    at = at === 0 ? -1 : bytes.lastIndexOf(ZIP_END, at - 1)
  ) {
    if (at + ZIP_END_BYTES > bytes.length) continue;
    if (at + ZIP_END_BYTES + bytes.readUInt16LE(at + 20) === bytes.length) return true;
  }
  return false;
}

/** The archive or compression format that these bytes are, or null. */
export function archiveFormat(bytes: Buffer): string | null {
  for (const [format, offset, hex] of MAGIC) {
    const magic = Buffer.from(hex, 'hex');
    if (bytes.subarray(offset, offset + magic.length).equals(magic)) return format;
  }
  return endsAsZip(bytes) ? 'zip' : null;
}
