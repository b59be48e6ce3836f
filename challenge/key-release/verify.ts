import type { TdxQuote } from '../../guest/attest/quote.ts';
import type { Code } from '../../guest/errors.ts';
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

/** Failures of `quote_chain` that are found only after every signature of the quote has been verified. */
const FOUND_AFTER_SIGNATURES: ReadonlySet<string> = new Set<Code>([
  'tcb_fmspc_mismatch',
  'tcb_revoked',
  'td_debug',
  'td_attributes_invalid',
]);

const isGood = (checks: readonly CheckReport[]): boolean =>
  checks.some(
    ({ name, status, code }) =>
      name === 'quote_chain' && (status === 'ok' || (code !== null && FOUND_AFTER_SIGNATURES.has(code))),
  );

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
