import { sign } from 'node:crypto';
import { failedCheck } from '../../challenge/verify/checklist.ts';
import { type EvidenceInput, verifyEvidence } from '../../challenge/verify/evidence.ts';
import { parseEventLog } from '../../guest/attest/event-log.ts';
import type { Code } from '../../guest/errors.ts';
import { type Collateral, signDocument } from '../../simulator/collateral.ts';
import type { Platform } from '../../simulator/platform.ts';
import { deriveKey } from '../../simulator/seed.ts';
import { allowlistOf, NOW_MS } from './valid-result.ts';

export const REPORT_DATA = Buffer.alloc(64, 0x5a);

/** Evidence of `platform` that passes the whole list, unless the platform has a fault. */
export function evidenceOf(platform: Platform, overrides: Partial<EvidenceInput> = {}): EvidenceInput {
  return {
    quoteBytes: platform.quote(REPORT_DATA, { version: 4 }),
    eventLog: parseEventLog(platform.eventLog),
    reportData: REPORT_DATA,
    allowlist: allowlistOf(platform),
    rootDer: platform.rootDer,
    collateral: platform.collateral,
    acceptedTcb: new Set(['UpToDate']),
    nowMs: NOW_MS,
    ...overrides,
  };
}

/** `check: code` of the check that refused, or `verified`. */
export async function outcomeOf(input: EvidenceInput): Promise<string> {
  const checks = await verifyEvidence(input);
  const failed = failedCheck(checks);
  if (failed) return `${failed.name}: ${failed.code}`;
  return checks.every(({ status }) => status === 'ok') ? 'verified' : 'undecided';
}

export type Outcome = `${string}: ${Code}`;

/** A version 4 quote with `bytes` written at `offset` of its signed part, truly signed again. */
export function resigned(platform: Platform, quote: Buffer, offset: number, bytes: Buffer): Buffer {
  const changed = Buffer.from(quote);
  bytes.copy(changed, offset);
  const key = deriveKey(platform.seed, 'attestation');
  sign('sha256', changed.subarray(0, 632), { key, dsaEncoding: 'ieee-p1363' }).copy(changed, 636);
  return changed;
}

/** TCB info changed by `edit` and truly signed again. */
export function withTcbInfo(
  platform: Platform,
  edit: (tcbInfo: Record<string, unknown>) => void,
): Collateral {
  const tcbInfo = JSON.parse(platform.collateral.tcb_info) as Record<string, unknown>;
  edit(tcbInfo);
  const text = JSON.stringify(tcbInfo);
  return { ...platform.collateral, tcb_info: text, tcb_info_signature: signDocument(platform.pki, text) };
}

/** QE identity changed by `edit` and truly signed again. */
export function withQeIdentity(
  platform: Platform,
  edit: (identity: Record<string, unknown>) => void,
): Collateral {
  const identity = JSON.parse(platform.collateral.qe_identity) as Record<string, unknown>;
  edit(identity);
  const text = JSON.stringify(identity);
  return {
    ...platform.collateral,
    qe_identity: text,
    qe_identity_signature: signDocument(platform.pki, text),
  };
}
