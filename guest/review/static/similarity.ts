import { createHash } from 'node:crypto';
import type { Containment } from '../../wire/review-decision.ts';
import type { Corpus } from '../../wire/review-inputs.ts';
import type { Member } from './findings.ts';
import { kindOf } from './language.ts';
import { textOfMember } from './member.ts';

/** Tokens of one hash, and hashes of one window (winnowing: Schleimer, Wilkerson, Aiken, SIGMOD 2003). */
const K = 12;
const WINDOW = 8;
/** Of a package: as much code as is analysed at all. */
const MAX_TOKENS = 250_000;
/** Fewer fingerprints than these are no statement about anybody's work. */
const MIN_FINGERPRINTS = 8;

const MAX_TEXT = 1024 * 1024;

/** A text that is never closed goes to the end of its line: to look for its end from each quote would be quadratic. */
const TOKEN = /[A-Za-z_$][\w$]*|\d[\w.]*|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s\w]/g;
/** White space of its own line alone: over blank lines it would take time with their square. */
const COMMENT = /^[^\S\n\r\u2028\u2029]*(?:#|\/\/).*$/gm;
/** Words that give a program its shape; every other name counts as a name, so that renaming hides nothing. */
const KEYWORDS = new Set(
  (
    'and as assert async await break case catch class const continue def del do elif else except export extends false ' +
    'finally for from function global if import in instanceof is lambda let match new none not null or pass raise return ' +
    'self static super switch then this throw true try typeof var while with yield fi done esac local'
  ).split(' '),
);

function normalised(token: string): string {
  if (/^[A-Za-z_$]/.test(token)) return KEYWORDS.has(token.toLowerCase()) ? token.toLowerCase() : 'n';
  if (/^\d/.test(token)) return '0';
  return /^["']/.test(token) ? 's' : token;
}

/** At most `limit` tokens of code: names, numbers and texts each as one, comments and white space gone. */
function tokensOf(text: string, limit: number): string[] {
  const tokens: string[] = [];
  for (const [token] of text.replaceAll(COMMENT, '').matchAll(TOKEN)) {
    if (tokens.length >= limit) break;
    tokens.push(normalised(token));
  }
  return tokens;
}

function hashOf(tokens: readonly string[]): number {
  return createHash('sha256').update(tokens.join('\0')).digest().readUIntBE(0, 6);
}

/** The least hash of each window of hashes. */
function winnow(hashes: readonly number[], into: Set<number>): void {
  if (hashes.length === 0) return;
  for (let at = 0; at + WINDOW <= Math.max(hashes.length, WINDOW); at++) {
    into.add(Math.min(...hashes.slice(at, at + WINDOW)));
  }
}

/** The fingerprints of a package's code, ascending. */
export function fingerprintsOf(members: readonly Member[]): number[] {
  const found = new Set<number>();
  let left = MAX_TOKENS;
  for (const member of members) {
    if (left === 0) break;
    const text = textOfMember(member.bytes);
    if (text === null || /^(?:prose|data)$/.test(kindOf(member.path, text))) continue;
    const tokens = tokensOf(text.slice(0, MAX_TEXT), left);
    left -= tokens.length;
    const hashes = Array.from({ length: Math.max(0, tokens.length - K + 1) }, (_, i) =>
      hashOf(tokens.slice(i, i + K)),
    );
    winnow(hashes, found);
  }
  return [...found].sort((a, b) => a - b);
}

export interface Similarity {
  /** null: too little code to compare, or nothing to compare with. */
  containment: Containment | null;
  matched_agent_hash: string | null;
}

/**
 * The earlier submission that holds the largest part of this one. The same package, submitted again, is none.
 */
export function nearest(fingerprints: readonly number[], corpus: Corpus, agentHash: string): Similarity {
  const own = new Set(fingerprints);
  const none: Similarity = { containment: null, matched_agent_hash: null };
  if (own.size < MIN_FINGERPRINTS) return none;
  return corpus.submissions.reduce((best, { agent_hash, fingerprints: theirs }) => {
    if (agent_hash === agentHash) return best;
    const shared = theirs.filter((one) => own.has(one)).length;
    if (best.containment !== null && best.containment.shared >= shared) return best;
    return { containment: { shared, total: own.size }, matched_agent_hash: agent_hash };
  }, none);
}
