const SIMPLE: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
  e: '\x1b',
};

/** What an escape sequence of a string literal stands for, in Python, JavaScript and $'...' alike. */
export function unescapeSequence(sequence: string): string {
  const rest = sequence.slice(1);
  if (/^\r?\n$/.test(rest)) return '';
  const coded =
    /^x([0-9a-fA-F]{1,2})$/.exec(rest) ??
    /^u([0-9a-fA-F]{4})$/.exec(rest) ??
    /^u\{([0-9a-fA-F]{1,6})\}$/.exec(rest) ??
    /^U([0-9a-fA-F]{8})$/.exec(rest);
  if (coded?.[1]) return codePoint(Number.parseInt(coded[1], 16));
  if (/^[0-7]{1,3}$/.test(rest)) return codePoint(Number.parseInt(rest, 8));
  return SIMPLE[rest] ?? rest;
}

function codePoint(code: number): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : '';
}

/** All escape sequences of a text. */
export function unescapeAll(text: string): string {
  return text.replaceAll(
    /\\(?:x[0-9a-fA-F]{1,2}|u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|\r?\n|.)/gs,
    unescapeSequence,
  );
}
