const MAX_COMPONENT_BYTES = 255;
const MAX_PATH_BYTES = 4096;

/** Control and format characters (bidi marks among them), line and paragraph separators, unassigned ones. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** What a sniffing unpacker takes for a compressed archive, when a tar's first name begins with it. */
const COMPRESSION_MAGIC = ['BZh', 'PK\u0003\u0004', '\u001f\u008b', '\u00fd7zXZ', '(\u00b5/\u00fd', 'LZIP'];

/**
 * The one spelling of a tar member's name, without a leading `./` or a trailing slash, or why it is refused
 * (spec/08, archives).
 */
export function checkedPath(name: Buffer): string | { reason: string } {
  if (name.length > MAX_PATH_BYTES) return { reason: 'the name is too long' };
  const text = name.toString('utf8');
  if (!Buffer.from(text).equals(name)) return { reason: 'the name is not UTF-8' };
  if (UNPRINTABLE.test(text)) return { reason: 'the name holds a control or format character' };
  if (text.startsWith('/')) return { reason: 'the name is absolute' };
  const path = text.replace(/^(\.\/)+/, '').replace(/\/$/, '');
  for (const component of path.split('/')) {
    if (component === '' || component === '.' || component === '..') {
      return { reason: 'the name has an empty, `.` or `..` component' };
    }
    if (Buffer.byteLength(component) > MAX_COMPONENT_BYTES) {
      return { reason: `a component is longer than ${MAX_COMPONENT_BYTES} bytes` };
    }
  }
  return path;
}

/** True when a tar that begins with this name could be taken for a compressed one. */
export function looksCompressed(name: Buffer): boolean {
  const text = name.toString('latin1');
  return COMPRESSION_MAGIC.some((magic) => text.startsWith(magic));
}
