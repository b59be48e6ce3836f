import type { X509Certificate } from 'node:crypto';
import { parseQuote, type TdxQuote } from '../../guest/attest/quote.ts';
import { isRuntimeEvent } from '../../guest/attest/runtime-event.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import type { WireEvent } from '../../guest/wire/result.ts';
import { certificateExtensions, octets, valuesOf } from '../verify/x509-der.ts';
import { type RaTlsEvidence, raTlsReportData, readRaTlsEvidence } from './ra-tls.ts';

/** As much as clocks may differ, and whole seconds may round (as at the start of a plan). */
const SKEW_MS = 5 * 60_000;

/** The certificate a guest showed, whose chain TLS has verified up to the KMS root. */
export interface ClientCertificate {
  /** SHA-256 of its SubjectPublicKeyInfo, hex. */
  spkiDigest: string;
  spki: Buffer;
  notBeforeMs: number;
  notAfterMs: number;
  evidence: RaTlsEvidence;
}

function spkiOf({ publicKey }: X509Certificate): Buffer {
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new EvaluatorError('client_certificate_malformed', 'client certificate: its key is not P-256');
  }
  return publicKey.export({ format: 'der', type: 'spki' });
}

/** SHA-256 of a certificate's SubjectPublicKeyInfo, hex: who speaks on a connection. */
export function spkiDigestOf(certificate: X509Certificate): string {
  return sha256Hex(spkiOf(certificate));
}

function extensionReader(der: Buffer): (oid: string) => Buffer | null {
  let extensions: ReturnType<typeof certificateExtensions>;
  try {
    extensions = certificateExtensions(der);
  } catch (cause) {
    throw new EvaluatorError('client_certificate_malformed', 'client certificate: not DER', { cause });
  }
  return (oid) => {
    const [value, second] = valuesOf(extensions, oid);
    if (second) {
      throw new EvaluatorError('ra_tls_evidence_malformed', `client certificate: extension ${oid} twice`);
    }
    return octets(value);
  };
}

/**
 * Reads a client certificate and the evidence in it.
 * @param certificate as the connection has it: made from its bytes, it could be one that hides inside them.
 * @throws client_certificate_malformed, ra_tls_evidence_*.
 */
export function readClientCertificate(certificate: X509Certificate): ClientCertificate {
  const spki = spkiOf(certificate);
  return {
    spki,
    spkiDigest: sha256Hex(spki),
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
    evidence: readRaTlsEvidence(extensionReader(certificate.raw)),
  };
}

function verifyDates({ notBeforeMs, notAfterMs, evidence }: ClientCertificate, plan: EvalPlan): void {
  // Older releases date their certificates themselves; TLS has verified that they are valid now.
  if (evidence.form === 'quote-and-log') return;
  if (notBeforeMs >= plan.issued_at_ms - SKEW_MS && notAfterMs <= plan.expires_at_ms + SKEW_MS) return;
  throw new EvaluatorError(
    'client_certificate_dates',
    'client certificate: valid beyond the plan it asks for; ask for one with the dates of the plan',
  );
}

/** Both quotes are of one TD: what was measured into it, and how it may be looked into. */
function isSameTd(one: TdxQuote, other: TdxQuote): boolean {
  const identity = ({ mrtd, rtmr, mrConfigId, tdAttributes }: TdxQuote) =>
    [mrtd, ...rtmr, mrConfigId, tdAttributes].join();
  return identity(one) === identity(other);
}

function claimedAppId(eventLog: readonly WireEvent[]): string | null {
  return eventLog.filter(isRuntimeEvent).find(({ event }) => event === 'app-id')?.event_payload ?? null;
}

/**
 * The certificate belongs to the TD that made the request's quote: its dates are the plan's, its own quote
 * binds its key and shows the same registers, its app is the log's. Whether either quote is genuine is not
 * looked at here.
 * @returns the certificate's quote.
 * @throws client_certificate_dates, ra_tls_binding_mismatch, ra_tls_registers_mismatch, ra_tls_app_mismatch.
 */
export function verifyClientCertificate(
  certificate: ClientCertificate,
  plan: EvalPlan,
  quote: TdxQuote,
  eventLog: readonly WireEvent[],
): TdxQuote {
  const { evidence, spki } = certificate;
  verifyDates(certificate, plan);
  const own = parseQuote(evidence.quoteBytes);
  if (!own.reportData.equals(raTlsReportData(spki))) {
    throw new EvaluatorError('ra_tls_binding_mismatch', 'client certificate: its quote is for another key');
  }
  if (evidence.appId !== claimedAppId(eventLog)) {
    throw new EvaluatorError('ra_tls_app_mismatch', "client certificate: its app id is not the log's");
  }
  if (!isSameTd(own, quote)) {
    throw new EvaluatorError(
      'ra_tls_registers_mismatch',
      "client certificate: its quote shows another TD than the request's",
    );
  }
  return own;
}
