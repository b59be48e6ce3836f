import { sha256Hex } from '../../../wire/digest.ts';
import { textsOf } from '../value.ts';
import type { Detector } from './context.ts';

/** Shorter fragments are everybody's. */
const MIN_FRAGMENT = 32;

/** A text as fragments are compared: runs of white space are one space, none at the ends. */
function normaliseFragment(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

/** The digest of a fragment, or null when it is too short to mean anything. */
export function fragmentDigest(text: string): string | null {
  const normal = normaliseFragment(text);
  return normal.length < MIN_FRAGMENT ? null : sha256Hex(normal);
}

/** The digests of a text as a whole and of each of its lines. */
export function fragmentsOf(text: string): string[] {
  const parts = text.includes('\n') ? [text, ...text.split('\n')] : [text];
  return parts.flatMap((part) => fragmentDigest(part) ?? []);
}

/** An answer that was not worked out: a long literal that is a part of a public solution. */
export const detectFragments: Detector = (fact, { fragments }) => {
  if (fact.kind !== 'text' && fact.kind !== 'code') return [];
  const texts = fact.kind === 'code' ? [fact.source] : textsOf(fact.value);
  return texts.some((text) => fragmentsOf(text).some((one) => fragments.has(one)))
    ? ['hardcoded_answer']
    : [];
};
