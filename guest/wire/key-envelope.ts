import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { EvaluatorError } from '../errors.ts';
import { decodeCanonical, encodeCanonical } from './canonical.ts';
import { type KeyReply, type ReleasedKeys, releasedKeysSchema } from './key-release.ts';
import { parseSchema } from './scalars.ts';

const INFO = 'cvm-evaluator/key-release/v3';
const TAG_BYTES = 16;
const MAX_PLAIN_BYTES = 1024 * 1024;
/** DER prefix of an X25519 public key (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');

/** What a reply is bound to besides its key (AAD). */
export interface EnvelopeContext {
  eval_run_id: string;
  nonce: string;
  /** SHA-256 of the client certificate's SubjectPublicKeyInfo, hex. */
  spki: string;
}

/** An X25519 key pair for one exchange. */
export function recipientKey(): { privateKey: KeyObject; publicHex: string } {
  const { privateKey } = generateKeyPairSync('x25519');
  return { privateKey, publicHex: publicHexOf(privateKey) };
}

function publicHexOf(privateKey: KeyObject): string {
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return spki.subarray(SPKI_PREFIX.length).toString('hex');
}

function publicKeyOf(hex: string): KeyObject {
  return createPublicKey({
    key: Buffer.concat([SPKI_PREFIX, Buffer.from(hex, 'hex')]),
    format: 'der',
    type: 'spki',
  });
}

function secretKey(own: KeyObject, peerHex: string, recipientHex: string, ephemeralHex: string): Buffer {
  const shared = diffieHellman({ privateKey: own, publicKey: publicKeyOf(peerHex) });
  const salt = createHash('sha256')
    .update(Buffer.from(recipientHex + ephemeralHex, 'hex'))
    .digest();
  return Buffer.from(hkdfSync('sha256', shared, salt, INFO, 32));
}

/**
 * Encrypts released keys to a recipient: X25519, HKDF-SHA256, AES-256-GCM (spec/04). `ephemeral` and `iv`
 * must be fresh for each reply; they are arguments so that a vector can pin the bytes.
 * @throws key_envelope_invalid for a recipient key of small order.
 */
export function sealKeys(
  keys: ReleasedKeys,
  recipientHex: string,
  context: EnvelopeContext,
  ephemeral: KeyObject,
  iv: Buffer,
): KeyReply {
  const ephemeralHex = publicHexOf(ephemeral);
  try {
    const cipher = createCipheriv(
      'aes-256-gcm',
      secretKey(ephemeral, recipientHex, recipientHex, ephemeralHex),
      iv,
    );
    cipher.setAAD(encodeCanonical({ ...context }));
    const ciphertext = Buffer.concat([
      cipher.update(encodeCanonical(keys)),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    return {
      released: true,
      ephemeral_public_key: ephemeralHex,
      iv: iv.toString('hex'),
      ciphertext: ciphertext.toString('hex'),
    };
  } catch (cause) {
    throw new EvaluatorError(
      'key_envelope_invalid',
      'key request: recipient_public_key cannot be encrypted to',
      { cause },
    );
  }
}

/**
 * Opens a released reply with the recipient's private key.
 * @throws key_envelope_invalid when it was made for another key, run, nonce or certificate, or changed.
 */
export function openKeys(
  reply: Extract<KeyReply, { released: true }>,
  recipient: KeyObject,
  context: EnvelopeContext,
): ReleasedKeys {
  const ciphertext = Buffer.from(reply.ciphertext, 'hex');
  let plain: Buffer;
  try {
    const key = secretKey(
      recipient,
      reply.ephemeral_public_key,
      publicHexOf(recipient),
      reply.ephemeral_public_key,
    );
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(reply.iv, 'hex'), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(encodeCanonical({ ...context }));
    decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
    plain = Buffer.concat([decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw new EvaluatorError(
      'key_envelope_invalid',
      "key release: the reply does not open with this exchange's key",
      { cause },
    );
  }
  return parseSchema(releasedKeysSchema, decodeCanonical(plain, MAX_PLAIN_BYTES), 'released keys');
}
