import type { TdxQuote } from '../../guest/attest/quote.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { parseChain } from './certificates.ts';
import { sgxMember } from './sgx-extension.ts';

const PPID_BYTES = 16;

/**
 * Which machine made a quote: SHA-256, in hex, of the PPID in its PCK certificate. True only of a quote whose
 * chain was verified. Read from the certificate itself: the library leaves this field empty.
 * @throws platform_unidentified, certificate_malformed.
 */
export function platformOf(quote: Pick<TdxQuote, 'certChainPem'>): string {
  const [pck] = parseChain(quote.certChainPem, 3, "the quote's PCK chain");
  let ppid: Buffer | null = null;
  try {
    ppid = pck ? sgxMember(pck.raw, 'ppid') : null;
  } catch {
    // Not DER as it should be: the same as no PPID.
  }
  if (ppid?.length !== PPID_BYTES) {
    throw new EvaluatorError('platform_unidentified', 'quote: its PCK certificate names no platform (PPID)');
  }
  return sha256Hex(ppid);
}
