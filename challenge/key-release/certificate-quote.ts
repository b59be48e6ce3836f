import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { TdxQuote } from '../../guest/attest/quote.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseChain } from '../verify/certificates.ts';
import { parseCollateral } from '../verify/collateral.ts';
import { verifyDcap } from '../verify/dcap.ts';
import type { TrustPolicy } from '../verify/evidence.ts';

/** A quote as its bytes, and what was read from them. */
export interface ReadQuote {
  quote: TdxQuote;
  quoteBytes: Buffer;
}

/** DER prefix of an uncompressed P-256 SubjectPublicKeyInfo; the raw point follows. */
const P256_PREFIX = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex');

function p256Key(point: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([P256_PREFIX, point]), format: 'der', type: 'spki' });
}

/** Both were signed by one attestation key that one quoting enclave on one platform reports. */
function isSameQuotingEnclave(one: TdxQuote, other: TdxQuote): boolean {
  return (
    one.version === other.version &&
    one.qeVendorId === other.qeVendorId &&
    one.teeTcbSvn === other.teeTcbSvn &&
    one.mrSignerSeam === other.mrSignerSeam &&
    one.seamAttributes === other.seamAttributes &&
    one.certChainPem === other.certChainPem &&
    one.attestationKey.equals(other.attestationKey) &&
    one.qeReport.equals(other.qeReport) &&
    one.qeAuthData.equals(other.qeAuthData)
  );
}

function isSignedByItsEnclave(quote: TdxQuote): boolean {
  const key = p256Key(quote.attestationKey);
  return verify('sha256', quote.signedBytes, { key, dsaEncoding: 'ieee-p1363' }, quote.signature);
}

async function verifyAlone({ quote, quoteBytes }: ReadQuote, policy: TrustPolicy): Promise<void> {
  const { rootDer, nowMs } = policy;
  const collateral = parseCollateral(policy.collateral);
  const { tcbStatus } = await verifyDcap({ quote, quoteBytes, collateral, rootDer, nowMs });
  if (!policy.acceptedTcb.has(tcbStatus)) throw new Error(`TCB status is ${tcbStatus}`);
}

/**
 * The quote inside a client certificate is genuine. Where it comes from the quoting enclave whose report,
 * chain and TCB were verified with the request's quote, its own signature is all that is left to verify.
 * @param verified the request's quote, after the whole list.
 * @throws ra_tls_quote_invalid.
 */
export async function verifyCertificateQuote(
  own: ReadQuote,
  verified: TdxQuote,
  policy: TrustPolicy,
): Promise<void> {
  try {
    parseChain(own.quote.certChainPem, 3, "the certificate quote's PCK chain");
    if (!isSameQuotingEnclave(own.quote, verified)) return await verifyAlone(own, policy);
    if (!isSignedByItsEnclave(own.quote)) throw new Error('its signature is not of its quoting enclave');
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : 'unknown';
    throw new EvaluatorError('ra_tls_quote_invalid', `client certificate: its quote: ${message}`, { cause });
  }
}
