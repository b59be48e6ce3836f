import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';
import { decodeCanonical, encodeCanonical } from '../../guest/wire/canonical.ts';
import { int, parseSchema, sha256 } from '../../guest/wire/scalars.ts';
import { verifyOperatorReason } from '../ledger/operator-reason.ts';

const MAX_BYTES = 1024 * 1024;

/** The reviews that an operator took back, where reviews are files and no ledger remembers it. */
const revocationsSchema = z.strictObject({
  schema_version: z.literal(1),
  revocations: z.array(
    z.strictObject({ review_digest: sha256, reason: z.string().min(1).max(500), revoked_at_ms: int }),
  ),
});
type Revocations = z.infer<typeof revocationsSchema>;

/** The list that lies beside a review: without one nobody can say that the review still stands. */
export const revocationsBeside = (reviewPath: string) => join(dirname(reviewPath), 'revocations.json');

/** A reader sees the old list or the new one, never half of it. */
function write(path: string, revocations: Revocations['revocations']): void {
  writeFileSync(`${path}.new`, encodeCanonical({ schema_version: 1, revocations }), { flush: true });
  renameSync(`${path}.new`, path);
}

function read(path: string): Revocations['revocations'] {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const why = `${path} cannot be read; without it nobody can say that the review still stands`;
    throw new EvaluatorError('review_revocations_missing', why, { cause });
  }
  return parseSchema(revocationsSchema, decodeCanonical(bytes, MAX_BYTES), 'revocations').revocations;
}

/** Begins a list with nothing on it, where there is none yet. */
export function beginRevocations(path: string): void {
  if (!existsSync(path)) write(path, []);
}

/** @throws review_revoked; review_revocations_missing, json_*, schema_invalid. */
export function verifyNotRevoked(path: string, reviewDigest: string): void {
  const revoked = read(path).find(({ review_digest }) => review_digest === reviewDigest);
  if (revoked) throw new EvaluatorError('review_revoked', `the review was taken back: ${revoked.reason}`);
}

/**
 * Takes a review back; again, it stays as it was. A run that it admitted is not accepted any more either.
 * @throws reopen_reason_invalid, review_revocations_missing, json_*, schema_invalid.
 */
export function revoke(path: string, reviewDigest: string, reason: string, nowMs: number): void {
  verifyOperatorReason(reason);
  const earlier = read(path);
  if (earlier.some(({ review_digest }) => review_digest === reviewDigest)) return;
  write(path, [...earlier, { review_digest: reviewDigest, reason, revoked_at_ms: nowMs }]);
}
