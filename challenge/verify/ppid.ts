import type { TdxQuote } from '../../guest/attest/quote.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { parseChain } from './certificates.ts';
import { certificateExtensions, octets, parseDer, parts, valuesOf } from './x509-der.ts';

/** Intel's arc for what a PCK certificate says of its platform; the PPID is its first member. */
const SGX_EXTENSION = '1.2.840.113741.1.13.1';
const PPID = `${SGX_EXTENSION}.1`;
const PPID_BYTES = 16;

function ppidOf(pckDer: Buffer): Buffer | null {
  const [extension, second] = valuesOf(certificateExtensions(pckDer), SGX_EXTENSION);
  const bytes = octets(extension);
  if (!bytes || second) return null;
  const [ppid, other] = valuesOf(parts(parseDer(bytes)), PPID);
  return other ? null : octets(ppid);
}

/**
 * Which machine made a quote: SHA-256, in hex, of the PPID in its PCK certificate. True only of a quote whose
 * chain was verified. Read from the certificate itself: the library leaves this field empty.
 * @throws platform_unidentified, certificate_malformed.
 */
export function platformOf(quote: Pick<TdxQuote, 'certChainPem'>): string {
  const [pck] = parseChain(quote.certChainPem, 3, "the quote's PCK chain");
  let ppid: Buffer | null = null;
  try {
    ppid = pck ? ppidOf(pck.raw) : null;
  } catch {
    // Not DER as it should be: the same as no PPID.
  }
  if (ppid?.length !== PPID_BYTES) {
    throw new EvaluatorError('platform_unidentified', 'quote: its PCK certificate names no platform (PPID)');
  }
  return sha256Hex(ppid);
}
