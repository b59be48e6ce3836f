import type { Code } from '../../guest/errors.ts';

const OUTAGES: ReadonlySet<Code> = new Set([
  'collateral_unavailable',
  'collateral_malformed',
  'collateral_signature_invalid',
  'collateral_untrusted',
  'collateral_not_yet_valid',
  'collateral_expired',
  'crl_malformed',
  'crl_not_yet_valid',
  'crl_expired',
]);

/** True for failures that say something about the challenge's own collateral, nothing about a guest. */
export function isOutage(code: Code): boolean {
  return OUTAGES.has(code);
}
