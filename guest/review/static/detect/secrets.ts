import { textsOf } from '../value.ts';
import type { Detector } from './context.ts';

/** Forms of credentials that their issuers document. */
const CREDENTIALS: readonly RegExp[] = [
  /\bsk-(?:ant-|or-v1-|proj-)?[A-Za-z0-9_-]{20,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bgh[pousr]_[A-Za-z0-9]{36,}\b/,
  /\bgithub_pat_[A-Za-z0-9_]{40,}\b/,
  /\bglpat-[A-Za-z0-9_-]{20,}/,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/,
  /\bAIza[A-Za-z0-9_-]{35}\b/,
  /\bhf_[A-Za-z0-9]{30,}\b/,
  /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/,
];
/** A stand-in, not a secret. */
const PLACEHOLDER =
  /(?:x{6,}|0{8,}|\.\.\.|1234567|abcdef|your[-_]?|example|placeholder|redacted|dummy|<[^>]+>)/i;

/** True for a text with a credential in it. */
export function hasCredential(text: string): boolean {
  return CREDENTIALS.some((form) => {
    const found = form.exec(text)?.[0];
    return found !== undefined && !PLACEHOLDER.test(found);
  });
}

export const detectSecrets: Detector = (fact) => {
  if (fact.kind === 'prose') return hasCredential(fact.text) ? ['embedded_credential'] : [];
  if (fact.kind !== 'text') return [];
  return textsOf(fact.value).some(hasCredential) ? ['embedded_credential'] : [];
};
