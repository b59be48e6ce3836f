import { hkdfSync } from 'node:crypto';
import { EvaluatorError } from '../errors.ts';

/** Of the golden key, of a task key, of a cache_id. */
export const KEY_BYTES = 32;

/**
 * The key of one task's sealed tests: HKDF-SHA256 of the golden key, 32 bytes (spec/05, Sealing). The salt is
 * the cache_id's raw bytes, not its hex; the info is ASCII.
 * @param cacheId,taskDigest 64 lower-case hex digits.
 * @throws golden_key_invalid when the golden key is not 32 bytes.
 */
export function taskKey(goldenKey: Buffer, cacheId: string, taskDigest: string): Buffer {
  if (goldenKey.length !== KEY_BYTES)
    throw new EvaluatorError(
      'golden_key_invalid',
      `golden key: ${goldenKey.length} bytes, not ${KEY_BYTES}; make one with \`evaluator keygen\``,
    );
  const salt = Buffer.from(cacheId, 'hex');
  return Buffer.from(hkdfSync('sha256', goldenKey, salt, `task-cache/v1:${taskDigest}`, KEY_BYTES));
}
