/** A member as text, or null for anything that is not: invalid UTF-8, NUL, control characters. */
export function textOfMember(bytes: Uint8Array): string | null {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return /[\x00-\x08\x0e-\x1a\x1c-\x1f\uFFFF]/.test(text) ? null : text;
}

/** A member's name for a document: printable ASCII, every other byte as \xNN. */
export function shownPath(path: string): string {
  return [...Buffer.from(path)]
    .map((byte) =>
      byte >= 0x20 && byte < 0x7f && byte !== 0x5c
        ? String.fromCharCode(byte)
        : `\\x${byte.toString(16).padStart(2, '0')}`,
    )
    .join('');
}
