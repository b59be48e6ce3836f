import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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

type List = Revocations['revocations'];

const encode = (revocations: List): Buffer => encodeCanonical({ schema_version: 1, revocations });

const isThere = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EEXIST';

function read(path: string): List {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    const why = `${path} cannot be read; without it nobody can say that the review still stands`;
    throw new EvaluatorError('review_revocations_missing', why, { cause });
  }
  return parseSchema(revocationsSchema, decodeCanonical(bytes, MAX_BYTES), 'revocations').revocations;
}

/** Begins the next list, for one process at a time: two that read the same one would each drop what the other adds. */
function beginNext(path: string): number {
  try {
    return openSync(path, 'wx');
  } catch (cause) {
    if (!isThere(cause)) throw cause;
    const why = `${path} is there: another review is being taken back, or that broke off; remove it if so`;
    throw new EvaluatorError('review_revocations_busy', why, { cause });
  }
}

/** A reader sees the old list or the new one, never half of it. */
function change(path: string, edit: (earlier: List) => List): void {
  const next = `${path}.new`;
  const file = beginNext(next);
  try {
    writeFileSync(file, encode(edit(read(path))), { flush: true });
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Begins a list with nothing on it, where there is none yet. */
export function beginRevocations(path: string): void {
  try {
    writeFileSync(path, encode([]), { flag: 'wx', flush: true });
  } catch (error) {
    if (!isThere(error)) throw error;
  }
}

/** @throws review_revoked; review_revocations_missing, json_*, schema_invalid. */
export function verifyNotRevoked(path: string, reviewDigest: string): void {
  const revoked = read(path).find(({ review_digest }) => review_digest === reviewDigest);
  if (revoked) throw new EvaluatorError('review_revoked', `the review was taken back: ${revoked.reason}`);
}

/**
 * Takes a review back; again, it stays as it was. A run that it admitted is not accepted any more either.
 * @throws reopen_reason_invalid, review_revocations_missing, review_revocations_busy, json_*, schema_invalid.
 */
export function revoke(path: string, reviewDigest: string, reason: string, nowMs: number): void {
  verifyOperatorReason(reason);
  change(path, (earlier) =>
    earlier.some(({ review_digest }) => review_digest === reviewDigest)
      ? earlier
      : [...earlier, { review_digest: reviewDigest, reason, revoked_at_ms: nowMs }],
  );
}
