import { unescapeAll } from './escapes.ts';
import type { Language } from './language.ts';

/** The lines of a text as Python and JavaScript count them, and as the model is shown them. */
export const linesOf = (text: string): string[] => text.split(/\r\n|\n|\r/);

/** PEP 263, in either of the first two lines. */
const CODING = /^\ufeff?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)/;
/** In these, whatever is ASCII is what it looks like. */
const PLAIN = /^(?:utf-?8(?:-sig)?|(?:us-)?ascii|latin-?1|iso-?8859-1)$/;

/** Python in an encoding of its own choice: in UTF-7 or unicode_escape, what looks like a comment can be code. */
export function isRecoded(python: string): boolean {
  return linesOf(python.slice(0, 65_536))
    .slice(0, 2)
    .some((line) => {
      const encoding = CODING.exec(line)?.[1]?.toLowerCase().replaceAll('_', '-');
      return encoding !== undefined && !PLAIN.test(encoding);
    });
}

/** A carriage return alone ends a line, and a comment, but for a shell. */
export function withNewlines(language: Language, source: string): string {
  return language === 'shell' ? source : source.replaceAll(/\r\n?/g, '\n');
}

/** A name as its language compares it: letters of other styles (PEP 3131) and escapes are the same name. */
export function nameIn(language: Language, text: string): string {
  if (language === 'python') return text.normalize('NFKC');
  return language === 'shell' || !text.includes('\\') ? text : unescapeAll(text);
}
