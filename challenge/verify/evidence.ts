import { timingSafeEqual } from 'node:crypto';
import { type RuntimeClaims, readRuntimeClaims, verifyMrConfigId } from '../../guest/attest/event-log.ts';
import { verifyStorageFs } from '../../guest/attest/evidence.ts';
import { isDebugTd, parseQuote, type TdxQuote } from '../../guest/attest/quote.ts';
import { measurementOf, verifyReplay } from '../../guest/attest/registers.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import type { Allowlist, KeyProvider, Measurement } from '../../guest/wire/measurement.ts';
import type { WireEvent } from '../../guest/wire/result.ts';
import { type Check, type CheckReport, runChecklist } from './checklist.ts';
import { parseCollateral } from './collateral.ts';
import { verifyDcap } from './dcap.ts';
import type { TcbStanding } from './tdx-module.ts';

/** The verification list of spec/04, in its order. */
export const EVIDENCE_CHECKS = [
  'quote_shape',
  'quote_chain',
  'tcb_status',
  'td_debug',
  'registers',
  'measurement',
  'report_data',
] as const;
export type EvidenceCheck = (typeof EVIDENCE_CHECKS)[number];

/** Whom to trust, and under which conditions. Every field is an expectation: none has a default. */
export interface TrustPolicy {
  /** The trusted TDX root, DER. */
  rootDer: Buffer;
  /** Intel's statements about the platform's type, unread. */
  collateral: unknown;
  /** TCB statuses that are good enough. */
  acceptedTcb: ReadonlySet<string>;
  allowlist: Allowlist;
  /** Milliseconds since the epoch. */
  nowMs: number;
}

export interface EvidenceInput extends TrustPolicy {
  quoteBytes: Buffer;
  eventLog: readonly WireEvent[];
  /** What the quote must carry: 64 bytes. */
  reportData: Buffer;
}

/** What a quote and its log say once the whole list has passed. */
export interface VerifiedEvidence {
  quote: TdxQuote;
  measurement: Measurement;
  keyProvider: KeyProvider;
  claims: RuntimeClaims;
  tcb: TcbStanding;
}

function parseExactQuote(bytes: Buffer): TdxQuote {
  const quote = parseQuote(bytes);
  if (quote.trailing.length > 0) {
    throw new EvaluatorError(
      'quote_trailing_bytes',
      `quote: ${quote.trailing.length} bytes follow its declared length of ${quote.declaredLength}`,
    );
  }
  return quote;
}

function verifyTcbStatus({ tcbStatus, advisoryIds }: TcbStanding, accepted: ReadonlySet<string>): void {
  if (accepted.has(tcbStatus)) return;
  const advisories = advisoryIds.length > 0 ? ` (${advisoryIds.join(', ')})` : '';
  throw new EvaluatorError(
    'tcb_status_refused',
    `platform: TCB status is ${tcbStatus}${advisories}, accepted: ${[...accepted].join(', ') || 'none'}`,
  );
}

function verifyNotDebug(quote: TdxQuote): void {
  if (isDebugTd(quote)) {
    throw new EvaluatorError('td_debug', 'quote: a debug TD, its memory is open to its host');
  }
}

function verifyRegisters(quote: TdxQuote, eventLog: readonly WireEvent[]): RuntimeClaims {
  verifyReplay(quote, eventLog);
  const claims = readRuntimeClaims(eventLog);
  verifyMrConfigId(quote, claims.composeHash);
  verifyStorageFs(claims);
  return claims;
}

const same = (a: object, b: object): boolean => encodeCanonical(a).equals(encodeCanonical(b));

function verifyAllowed(measurement: Measurement, keyProvider: KeyProvider, allowlist: Allowlist): void {
  const listed = allowlist.entries.filter((entry) => same(entry.measurement, measurement));
  if (listed.length === 0) {
    throw new EvaluatorError(
      'measurement_not_allowed',
      `measurement: no entry of the allowlist has this mrtd, rtmr0..2, compose_hash and os_image_hash`,
    );
  }
  if (!listed.some((entry) => same(entry.key_provider, keyProvider))) {
    throw new EvaluatorError(
      'key_provider_not_allowed',
      `measurement: key provider ${keyProvider.name} with this id is not the allowlist's`,
    );
  }
}

/** Constant time, over all 64 bytes. @throws report_data_mismatch. */
export function verifyReportData(found: Buffer, expected: Buffer): void {
  if (found.length !== 64 || expected.length !== 64 || !timingSafeEqual(found, expected)) {
    throw new EvaluatorError('report_data_mismatch', 'quote: report data is not what this document binds to');
  }
}

/** Makes the checks of EVIDENCE_CHECKS within a longer list. */
export async function checkEvidence(
  check: Check<EvidenceCheck>,
  input: EvidenceInput,
): Promise<VerifiedEvidence> {
  const { quoteBytes, eventLog, allowlist, rootDer, nowMs } = input;
  const quote = await check('quote_shape', 'quote_malformed', () => parseExactQuote(quoteBytes));
  const tcb = await check('quote_chain', 'quote_signature_invalid', () =>
    verifyDcap({ quote, quoteBytes, collateral: parseCollateral(input.collateral), rootDer, nowMs }),
  );
  await check('tcb_status', 'tcb_status_refused', () => verifyTcbStatus(tcb, input.acceptedTcb));
  await check('td_debug', 'td_debug', () => verifyNotDebug(quote));
  const claims = await check('registers', 'event_log_invalid', () => verifyRegisters(quote, eventLog));
  const measurement = measurementOf(quote, claims);
  const { keyProvider } = claims;
  await check('measurement', 'measurement_not_allowed', () =>
    verifyAllowed(measurement, keyProvider, allowlist),
  );
  await check('report_data', 'report_data_mismatch', () =>
    verifyReportData(quote.reportData, input.reportData),
  );
  return { quote, measurement, keyProvider, claims, tcb };
}

/** The verification list alone: one report per check, in order. Verified only when all are ok. */
export function verifyEvidence(input: EvidenceInput): Promise<CheckReport[]> {
  return runChecklist(EVIDENCE_CHECKS, async (check) => {
    await checkEvidence(check, input);
  });
}
