import type { Finding } from '../audit/agent-result.ts';

/** Lines may differ by this much; a missing one passes. */
const MAX_LINES_APART = 10;
/** Jaccard similarity from which two texts speak of the same thing. */
const MIN_SIMILARITY = 0.34;

/** As much of a planted or reported item as a match looks at, prepared once. */
export interface Item {
  path: string;
  line: number | null;
  cwes: ReadonlySet<number>;
  words: ReadonlySet<string>;
  package: string | null;
}

type Described = Pick<Finding, 'file'> & Partial<Finding>;

/** `\` becomes `/`, a leading `./` or `/` is dropped, lower case. */
function normalisePath(path: string): string {
  return path
    .replaceAll('\\', '/')
    .replace(/^(?:\.?\/)+/, '')
    .toLowerCase();
}

/** `CWE-079`, `79` and 79 are one number; what is no number is shared with nothing. */
function cweNumbers({ cwe, all_cwes: more }: Described): Set<number> {
  const numbers = [cwe, ...(more ?? [])].map((name) => /^(?:CWE-)?([0-9]{1,6})$/i.exec(String(name))?.[1]);
  return new Set(numbers.filter((digits) => digits !== undefined).map(Number));
}

function wordsOf({ title, description }: Described): Set<string> {
  return new Set(`${title ?? ''} ${description ?? ''}`.toLowerCase().match(/[\p{L}\p{N}_]+/gu));
}

/** PEP 503's way of comparing names, which suits npm's and others' too. */
const normalisePackage = (name: string) => name.toLowerCase().replace(/[-_.]+/g, '-');

export function toItem(described: Described): Item {
  return {
    path: normalisePath(described.file),
    line: described.line ?? null,
    cwes: cweNumbers(described),
    words: wordsOf(described),
    package: described.package ? normalisePackage(described.package) : null,
  };
}

/** Equal, or one a suffix of the other at a `/` boundary. */
function sameFile(a: Item, b: Item): boolean {
  return a.path === b.path || a.path.endsWith(`/${b.path}`) || b.path.endsWith(`/${a.path}`);
}

function nearby(a: Item, b: Item): boolean {
  return a.line === null || b.line === null || Math.abs(a.line - b.line) <= MAX_LINES_APART;
}

/** Shared words over all words; 0 when neither has one. */
function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const [small, large] = a.size <= b.size ? [a, b] : [b, a];
  let shared = 0;
  for (const word of small) if (large.has(word)) shared += 1;
  const all = a.size + b.size - shared;
  return all === 0 ? 0 : shared / all;
}

function sameWeakness(a: Item, b: Item): boolean {
  return [...a.cwes].some((number) => b.cwes.has(number)) || similarity(a.words, b.words) >= MIN_SIMILARITY;
}

/** How a reported item answers a planted one, by dimension (spec/02, Scoring; docs/tracks.md). */
export const MATCHES = {
  vulnerabilities: (a: Item, b: Item) => sameFile(a, b) && nearby(a, b) && sameWeakness(a, b),
  supply_chain: (a: Item, b: Item) => sameFile(a, b) && a.package !== null && a.package === b.package,
  secrets: (a: Item, b: Item) => sameFile(a, b) && nearby(a, b),
} as const;
