import type { KeyObject } from 'node:crypto';
import type { Signer } from '../guest/wire/plan.ts';
import { ed25519PublicHex, signSigner } from '../guest/wire/plan-signature.ts';

/** How long a signer may issue documents after it was certified. */
const SIGNER_LIFE_MS = 30 * 86_400_000;

/** Keys that plans and assignments are issued under. */
export interface SigningKeys {
  challengeId: string;
  rootKey: KeyObject;
  signerKey: KeyObject;
}

/** The root's statement that the signer may issue documents from `nowMs` on. */
export function certifySigner({ challengeId, rootKey, signerKey }: SigningKeys, nowMs: number): Signer {
  const statement = {
    public_key: ed25519PublicHex(signerKey),
    challenge_id: challengeId,
    not_before_ms: nowMs,
    not_after_ms: nowMs + SIGNER_LIFE_MS,
  };
  return signSigner(statement, rootKey);
}
