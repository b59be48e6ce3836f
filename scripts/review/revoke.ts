import { revokeReviewFile } from '../../challenge/index.ts';
import { parseOptions, required } from '../cli/arguments.ts';
import { existingPath } from '../cli/paths.ts';
import { USAGE } from './options.ts';

/** An operator's word on a review that was left as a file. */
export interface Revocation {
  /** Of review.json. */
  path: string;
  reason: string;
}

/** Reads `--revoke FILE --reason TEXT`; null when a review is asked for. @throws usage. */
export function readRevocation(argv: readonly string[]): Revocation | null {
  if (!argv.some((one) => one === '--revoke' || one.startsWith('--revoke='))) return null;
  const values = parseOptions(argv, { revoke: { type: 'string' }, reason: { type: 'string' } }, USAGE);
  return {
    path: existingPath('review', 'revoke', required(values.revoke, 'revoke', USAGE)),
    reason: required(values.reason, 'reason', USAGE),
  };
}

/** Takes the review back, and says which. @throws what `revokeReviewFile` throws. */
export function revokeByFile({ path, reason }: Revocation, nowMs: number): string {
  return `revoked: ${revokeReviewFile(path, reason, nowMs)}\n`;
}
