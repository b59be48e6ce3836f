import { encryptEnvVars } from '@phala/dstack-sdk/encrypt-env-vars';
import { verifyEnvEncryptPublicKeyLegacy } from '@phala/dstack-sdk/verify-env-encrypt-public-key';
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
 * The KMS's signature over the key that variables are encrypted for. Without it the cloud could hand out a
 * key of its own and read them.
 * @throws deploy_env_key_invalid.
 */
export function verifyEnvKey({ publicKey, signature }: SignedEnvKey, expected: ExpectedEnvKey): void {
  const { appId, kmsSigner, provisioned } = expected;
  if (provisioned !== null && provisioned !== publicKey)
    throw invalid('provisioning named another one than the KMS');
  // The API hands out no time with the signature, so there is none to check; the key is bound to the app.
  const signer = verifyEnvEncryptPublicKeyLegacy(
    Buffer.from(publicKey, 'hex'),
    Buffer.from(signature, 'hex'),
    appId,
  );
  if (signer === null) throw invalid('its signature is none');
  if (signer !== `0x${kmsSigner}`)
    throw invalid(`signed by ${signer.slice(2)}, --kms-signer is ${kmsSigner}`);
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
