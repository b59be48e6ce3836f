import type { Language } from './language.ts';
import type { Value } from './value.ts';

/** What a program says or does, in no language in particular: what the detectors read. */
export type Fact =
  | {
      kind: 'call';
      line: number;
      /** Dotted, aliases resolved: `os.system`. */
      callee: string;
      receiver: Value;
      args: readonly Value[];
    }
  /** A command with its words, redirections' files among them. */
  | {
      kind: 'command';
      line: number;
      words: readonly Value[] /** What comes through its pipe. */;
      input: Value | null;
    }
  /** A text that stands by itself, as whole as it could be put together. */
  | { kind: 'text'; line: number; value: Value }
  | { kind: 'compare'; line: number; operands: readonly Value[] }
  /** A key of a table. */
  | { kind: 'key'; line: number; value: Value }
  /** For people: a comment, a docstring. */
  | { kind: 'prose'; line: number; text: string }
  /** Code in a text that is run: `sh -c`, `python -c`, exec, a here-document. */
  | { kind: 'code'; line: number; language: Language; source: string };
