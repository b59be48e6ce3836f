import { createCipheriv, createDecipheriv } from 'node:crypto';
import { EvaluatorError } from '../errors.ts';
import { encodeCanonical } from '../wire/canonical.ts';
import { packSealedTar, readSealedTar } from './sealed-tar.ts';
import type { TaskFile } from './types.ts';

const CIPHER = 'aes-256-gcm';
export const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES;
const MAX_PLAIN_BYTES = 512 * 1024 * 1024;
export const MAX_SEALED_BYTES = MAX_PLAIN_BYTES + OVERHEAD_BYTES;

/** What a blob is bound to besides its key: it opens as this task of this cache, and as no other. */
interface SealContext {
  /** 64 lower-case hex digits. */
  cacheId: string;
  /** Over the public files and the sealed ones, salt included. */
  taskDigest: string;
  taskId: string;
}

function associatedData({ cacheId, taskDigest, taskId }: SealContext): Buffer {
  return encodeCanonical({ cache_id: cacheId, task_digest: taskDigest, task_id: taskId });
}

/** The next power of two: a blob's size says little about the size of the tests. */
function paddedBytes(bytes: number): number {
  return 2 ** Math.ceil(Math.log2(bytes));
}

/**
 * Seals tests/ of one task: nonce(12) ‖ ciphertext ‖ tag(16), AES-256-GCM over a tar padded to a power of two
 * (spec/05). The same files, key, context and nonce give the same bytes.
 * @param files everything below tests/, `tests/.salt` among them.
 * @param nonce 12 random bytes, never used twice with a key.
 * @throws task_unsupported above 512 MiB, sealed_malformed without a salt, task_file_*.
 */
export async function sealTests(
  files: readonly TaskFile[],
  key: Buffer,
  context: SealContext,
  nonce: Buffer,
): Promise<Buffer> {
  const where = `task ${context.taskId}`;
  const tar = await packSealedTar(files, where);
  const padded = paddedBytes(tar.length);
  if (padded > MAX_PLAIN_BYTES)
    throw new EvaluatorError(
      'task_unsupported',
      `${where}: tests/ of ${tar.length} bytes, at most ${MAX_PLAIN_BYTES} are sealed`,
    );
  const cipher = createCipheriv(CIPHER, key, nonce);
  cipher.setAAD(associatedData(context));
  return Buffer.concat([
    nonce,
    cipher.update(tar),
    cipher.update(Buffer.alloc(padded - tar.length)),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
}

function decrypt(blob: Buffer, key: Buffer, context: SealContext): Buffer {
  const decipher = createDecipheriv(CIPHER, key, blob.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associatedData(context));
  decipher.setAuthTag(blob.subarray(-TAG_BYTES));
  // One update gives the whole plain text; nothing reads it before final() has judged the tag.
  const plain = decipher.update(blob.subarray(NONCE_BYTES, -TAG_BYTES));
  decipher.final();
  return plain;
}

/**
 * Opens a blob of `sealTests` in memory. Says only that it was sealed with this key for this task: the caller
 * compares the task digest.
 * @throws sealed_unopenable for a wrong key, another task's blob or a changed byte; sealed_malformed,
 * task_file_* for a plain text that `sealTests` does not make.
 */
export async function openSealed(blob: Buffer, key: Buffer, context: SealContext): Promise<TaskFile[]> {
  const where = `task ${context.taskId}`;
  if (blob.length <= OVERHEAD_BYTES || blob.length > MAX_SEALED_BYTES)
    throw new EvaluatorError('sealed_unopenable', `${where}: sealed tests of ${blob.length} bytes`);
  let plain: Buffer;
  try {
    plain = decrypt(blob, key, context);
  } catch (cause) {
    throw new EvaluatorError(
      'sealed_unopenable',
      `${where}: its sealed tests do not open with the released key; bake and release with the same golden key`,
      { cause },
    );
  }
  return readSealedTar(plain, where);
}
