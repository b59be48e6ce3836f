import { createHash } from 'node:crypto';
import { cutToDeclaredLength } from '../../guest/attest/quote.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { octets, parseDer } from '../verify/x509-der.ts';
import { type Msgpack, parseMsgpack } from './msgpack.ts';

const DSTACK = '1.3.6.1.4.1.62397.1';
/** dstack's certificate extensions, as far as they are read here. */
export const RA_TLS_OIDS = {
  quote: `${DSTACK}.1`,
  appId: `${DSTACK}.3`,
  attestation: `${DSTACK}.8`,
} as const;
const MAX_EVIDENCE_BYTES = 64 * 1024;

/**
 * `versioned`: dstack 0.5.9 and later, one attestation in .8. `quote-and-log`: releases before it, the quote
 * in .1 and its log in .2; some of them cannot set a certificate's dates.
 */
export type EvidenceForm = 'versioned' | 'quote-and-log';

export interface RaTlsEvidence {
  form: EvidenceForm;
  /** Cut to its declared length; nothing about it is verified yet. */
  quoteBytes: Buffer;
  /** Hex. */
  appId: string;
}

function malformed(problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('ra_tls_evidence_malformed', `certificate: ${problem}`, { cause });
}

/** What a certificate's quote signs: SHA-512("ratls-cert:" ‖ SPKI DER), 64 bytes. */
export function raTlsReportData(spki: Uint8Array): Buffer {
  return createHash('sha512').update('ratls-cert:').update(spki).digest();
}

/** dstack wraps each extension's value in an OCTET STRING of its own. */
function unwrap(value: Buffer, name: string): Buffer {
  if (value.length > MAX_EVIDENCE_BYTES) throw malformed(`${name} is above ${MAX_EVIDENCE_BYTES} bytes`);
  let content: Buffer | null;
  try {
    content = octets(parseDer(value));
  } catch (cause) {
    throw malformed(`${name} is not DER`, cause);
  }
  if (!content) throw malformed(`${name} is not an OCTET STRING`);
  return content;
}

/** Bytes after a SCALE compact length. */
function scaleBytes(bytes: Buffer): Buffer {
  const mode = (bytes[0] ?? 3) & 3;
  const width = [1, 2, 4][mode];
  if (width === undefined || bytes.length < width)
    throw malformed('a length in its attestation is unreadable');
  const length = bytes.readUIntLE(0, width) >>> 2;
  if (bytes.length < width + length) throw malformed('its attestation ends too early');
  return bytes.subarray(width, width + length);
}

const isMap = (value: Msgpack | undefined): value is { [key: string]: Msgpack } =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);
const isByte = (value: Msgpack): value is number => typeof value === 'number' && value <= 255;

function msgpackQuote(bytes: Buffer): Buffer {
  const attestation = parseMsgpack(bytes);
  if (!isMap(attestation) || attestation.version !== 1 || !isMap(attestation.platform)) {
    throw new EvaluatorError(
      'ra_tls_evidence_unsupported',
      'certificate: not an attestation of version 0 or 1',
    );
  }
  const { kind, data } = attestation.platform;
  if (kind !== 'tdx' || !isMap(data)) {
    throw new EvaluatorError(
      'ra_tls_evidence_unsupported',
      'certificate: its attestation is not of plain TDX',
    );
  }
  // serde writes bytes as a list of numbers unless told otherwise.
  if (Buffer.isBuffer(data.quote)) return data.quote;
  if (Array.isArray(data.quote) && data.quote.every(isByte)) return Buffer.from(data.quote);
  throw malformed('its attestation has no quote');
}

/** The quote of a VersionedAttestation. What follows it is not read: only the quote is signed. */
function versionedQuote(bytes: Buffer): Buffer {
  const [version, variant] = bytes;
  if (version !== 0) return msgpackQuote(bytes);
  if (variant !== 0) {
    throw new EvaluatorError(
      'ra_tls_evidence_unsupported',
      'certificate: its attestation is not of plain TDX',
    );
  }
  return scaleBytes(bytes.subarray(2));
}

function cut(quote: Buffer): Buffer {
  try {
    return cutToDeclaredLength(quote);
  } catch (cause) {
    throw malformed('its quote is unreadable', cause);
  }
}

/**
 * Reads the evidence of an RA-TLS certificate, in either form (spec/04).
 * @param extension the value of the certificate's extension with this OID, or null.
 * @throws ra_tls_evidence_missing, ra_tls_evidence_malformed, ra_tls_evidence_unsupported.
 */
export function readRaTlsEvidence(extension: (oid: string) => Buffer | null): RaTlsEvidence {
  const read = (name: keyof typeof RA_TLS_OIDS): Buffer | null => {
    const value = extension(RA_TLS_OIDS[name]);
    return value ? unwrap(value, name) : null;
  };
  const appId = read('appId');
  const attestation = read('attestation');
  const quote = attestation ? versionedQuote(attestation) : read('quote');
  if (!quote || !appId) {
    throw new EvaluatorError('ra_tls_evidence_missing', 'certificate: it carries no quote, or no app id');
  }
  return {
    form: attestation ? 'versioned' : 'quote-and-log',
    quoteBytes: cut(quote),
    appId: appId.toString('hex'),
  };
}
