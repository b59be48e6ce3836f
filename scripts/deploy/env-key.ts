import { secp256k1 } from '@noble/curves/secp256k1';
import { keccak_256 } from '@noble/hashes/sha3';
import { encryptEnvVars } from '@phala/dstack-sdk/encrypt-env-vars';
import { EvaluatorError } from '../../guest/errors.ts';
import type { SignedEnvKey } from './cloud.ts';

/** What the key must be: of this app, signed by this KMS. */
export interface ExpectedEnvKey {
  appId: string;
  /** Compressed secp256k1, hex. */
  kmsSigner: string;
  /** As provisioning named it; null when it did not. */
  provisioned: string | null;
}

function invalid(problem: string): EvaluatorError {
  return new EvaluatorError(
    'deploy_env_key_invalid',
    `key for variables: ${problem}; no variable was sent, nothing was created`,
  );
}

/**
 * Verified under the expected key, where the SDK returns whatever key it recovers, and writes a stack to stderr
 * when there is none. The API hands out no time with a signature, so there is none to check.
 */
function isSigned(publicKey: string, signature: string, { appId, kmsSigner }: ExpectedEnvKey): boolean {
  const message = Buffer.concat([
    Buffer.from('dstack-env-encrypt-pubkey:', 'ascii'),
    Buffer.from(appId + publicKey, 'hex'),
  ]);
  try {
    // Without its last byte, which only helps to recover a key.
    const compact = Buffer.from(signature.slice(0, 128), 'hex');
    return secp256k1.verify(compact, keccak_256(message), Buffer.from(kmsSigner, 'hex'), { lowS: false });
  } catch {
    return false;
  }
}

/**
 * The KMS's signature over the key that variables are encrypted for. Without it the cloud could hand out a
 * key of its own and read them.
 * @throws deploy_env_key_invalid.
 */
export function verifyEnvKey({ publicKey, signature }: SignedEnvKey, expected: ExpectedEnvKey): void {
  const { appId, kmsSigner, provisioned } = expected;
  if (provisioned !== null && provisioned !== publicKey)
    throw invalid('provisioning named another one than the KMS');
  if (!isSigned(publicKey, signature, expected))
    throw invalid(`not signed by ${kmsSigner} (--kms-signer) for app ${appId}`);
}

/** Variables, encrypted for a verified key: hex. */
export function encryptVariables(
  values: Readonly<Record<string, string>>,
  publicKey: string,
): Promise<string> {
  return encryptEnvVars(
    Object.entries(values).map(([key, value]) => ({ key, value })),
    publicKey,
  );
}
