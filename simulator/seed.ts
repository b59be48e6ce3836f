import { createECDH, createPrivateKey, hkdfSync, type KeyObject } from 'node:crypto';

/** Order of P-256 (SEC 2, 2.4.2). */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** `length` bytes that depend on the seed and the label alone: HKDF-SHA256(seed, salt "cvm-evaluator/simulator", label). */
export function deriveBytes(seed: Uint8Array, label: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, 'cvm-evaluator/simulator', label, length));
}

/** The same, as lower-case hex of `length` bytes. */
export function deriveHex(seed: Uint8Array, label: string, length: number): string {
  return deriveBytes(seed, label, length).toString('hex');
}

/** A P-256 private key that depends on the seed and the label alone. */
export function deriveKey(seed: Uint8Array, label: string): KeyObject {
  // 48 bytes reduced modulo the order: the bias is below 2^-128 (FIPS 186-5, A.2.1).
  const wide = BigInt(`0x${deriveHex(seed, `key/${label}`, 48)}`);
  const scalar = Buffer.from(((wide % (P256_ORDER - 1n)) + 1n).toString(16).padStart(64, '0'), 'hex');
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(scalar);
  const point = ecdh.getPublicKey();
  return createPrivateKey({
    format: 'jwk',
    key: {
      kty: 'EC',
      crv: 'P-256',
      d: scalar.toString('base64url'),
      x: point.subarray(1, 33).toString('base64url'),
      y: point.subarray(33, 65).toString('base64url'),
    },
  });
}
