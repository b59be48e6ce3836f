import type { TdxQuote } from '../../guest/attest/quote.ts';
import { type CheckReport, failedCheck, runChecklist } from '../verify/checklist.ts';
import {
  checkEvidence,
  EVIDENCE_CHECKS,
  type EvidenceInput,
  type VerifiedEvidence,
} from '../verify/evidence.ts';
import { platformOf } from '../verify/ppid.ts';
import { type ReadQuote, verifyCertificateQuote } from './certificate-quote.ts';

/** What is looked at before a key is given, in this order; docs/key-release.md explains each. */
export const KEY_RELEASE_CHECKS = [...EVIDENCE_CHECKS, 'certificate_quote', 'platform'] as const;

export interface KeyReleaseEvidence extends EvidenceInput {
  /** The quote inside the client certificate. */
  certificateQuote: ReadQuote;
}

export type KeyReleaseVerdict =
  | { kind: 'verified'; evidence: VerifiedEvidence; platform: string }
  | {
      kind: 'failed';
      failure: CheckReport;
      /** Whether the quote's signatures were good: only then does a denial use up an attempt. */
      signature: 'good' | 'not good';
    };

const isGood = (checks: readonly CheckReport[]): boolean =>
  checks.some(({ name, status }) => name === 'quote_chain' && status === 'ok');

/** Makes the whole list. Throws nothing about the evidence: a refusal is a verdict with its code. */
export async function verifyKeyReleaseEvidence(input: KeyReleaseEvidence): Promise<KeyReleaseVerdict> {
  let found: { evidence: VerifiedEvidence; platform: string } | undefined;
  const checks = await runChecklist(KEY_RELEASE_CHECKS, async (check) => {
    const evidence = await checkEvidence(check, input);
    const quote: TdxQuote = evidence.quote;
    await check('certificate_quote', 'ra_tls_quote_invalid', () =>
      verifyCertificateQuote(input.certificateQuote, quote, input),
    );
    const platform = await check('platform', 'platform_unidentified', () => platformOf(quote));
    found = { evidence, platform };
  });
  const failure = failedCheck(checks);
  if (failure) return { kind: 'failed', failure, signature: isGood(checks) ? 'good' : 'not good' };
  if (!found || checks.some(({ status }) => status !== 'ok')) throw new Error('a check was never made');
  return { kind: 'verified', ...found };
}
