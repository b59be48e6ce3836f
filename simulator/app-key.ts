import { hkdfSync } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519';
import { secp256k1 } from '@noble/curves/secp256k1';
import { keccak_256 } from '@noble/hashes/sha3';
import { deriveBytes } from './seed.ts';

/** GetKey's algorithms; the empty string and k256 mean secp256k1. */
export type KeyAlgorithm = 'secp256k1' | 'ed25519';

function recoverable(message: Uint8Array, key: Uint8Array): Buffer {
  const signature = secp256k1.sign(keccak_256(message), key);
  return Buffer.concat([signature.toCompactRawBytes(), Buffer.from([signature.recovery])]);
}

/**
 * GetKey: HKDF-SHA256(app key, salt "RATLS", info path), and who vouches for it: the app key over
 * "purpose:public key in hex", the KMS root key over "dstack-kms-issued:" ‖ app id ‖ app public key.
 */
export function deriveAppKey(
  platform: { seed: Buffer; appId: Buffer },
  request: { path: string; purpose: string; algorithm: KeyAlgorithm },
): { key: Buffer; signatureChain: [Buffer, Buffer] } {
  const appKey = deriveBytes(platform.seed, 'app-k256-key', 32);
  const kmsKey = deriveBytes(platform.seed, 'kms-k256-key', 32);
  const key = Buffer.from(hkdfSync('sha256', appKey, 'RATLS', request.path, 32));
  const publicKey =
    request.algorithm === 'ed25519' ? ed25519.getPublicKey(key) : secp256k1.getPublicKey(key, true);
  const issued = Buffer.concat([
    Buffer.from('dstack-kms-issued:'),
    platform.appId,
    secp256k1.getPublicKey(appKey, true),
  ]);
  const vouched = Buffer.from(`${request.purpose}:${Buffer.from(publicKey).toString('hex')}`);
  return { key, signatureChain: [recoverable(vouched, appKey), recoverable(issued, kmsKey)] };
}
