import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { EvaluatorError } from '../errors.ts';
import { encodeCanonical } from './canonical.ts';
import { type EvalPlan, type Signer, unsignedPlan } from './plan.ts';

const PLAN_CONTEXT = 'cvm-evaluator/plan/v2';
const SIGNER_CONTEXT = 'cvm-evaluator/signer/v1';
/** DER prefix of an Ed25519 SubjectPublicKeyInfo (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** What is signed: the context in ASCII, a zero byte, the canonical document (spec/01). */
export function signedBytes(context: string, doc: object): Buffer {
  return Buffer.concat([Buffer.from(`${context}\0`, 'ascii'), encodeCanonical(doc)]);
}

/** Raw 32-byte Ed25519 public key, hex → KeyObject. */
export function ed25519Key(publicKeyHex: string): KeyObject {
  return createPublicKey({
    key: Buffer.concat([SPKI_PREFIX, Buffer.from(publicKeyHex, 'hex')]),
    format: 'der',
    type: 'spki',
  });
}

/** KeyObject (public or private Ed25519) → raw public key, hex. */
export function ed25519PublicHex(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX.length).toString('hex');
}

/** Signs a signer statement with the root key. */
export function signSigner(signer: Omit<Signer, 'root_signature'>, rootKey: KeyObject): Signer {
  return {
    ...signer,
    root_signature: sign(null, signedBytes(SIGNER_CONTEXT, signer), rootKey).toString('hex'),
  };
}

/** Signs a plan with its signer's key. */
export function signPlan(plan: Omit<EvalPlan, 'plan_signature'>, signerKey: KeyObject): EvalPlan {
  return { ...plan, plan_signature: sign(null, signedBytes(PLAN_CONTEXT, plan), signerKey).toString('hex') };
}

/** The trust a guest is measured with: literals of its compose (spec/01, spec/06). */
export interface PlanRoot {
  publicKey: string;
  challengeId: string;
}

/** A document of the challenge, as far as its signer is judged. */
interface SignedDocument {
  /** What it is, for messages. */
  name: string;
  signer: Signer;
  issuedAtMs: number;
}

/**
 * The root's signature over a document's signer, and that the document was issued in the signer's window.
 * @throws signer_signature_invalid, signer_outside_window.
 */
export function verifySigner({ name, signer, issuedAtMs }: SignedDocument, root: PlanRoot): void {
  const { root_signature: rootSignature, ...statement } = signer;
  const signed = signedBytes(SIGNER_CONTEXT, statement);
  if (!verify(null, signed, ed25519Key(root.publicKey), Buffer.from(rootSignature, 'hex'))) {
    throw new EvaluatorError(
      'signer_signature_invalid',
      `${name}: signer.root_signature is not the root key's`,
    );
  }
  if (issuedAtMs < signer.not_before_ms || issuedAtMs > signer.not_after_ms) {
    throw new EvaluatorError(
      'signer_outside_window',
      `${name}: issued outside its signer's not_before_ms..not_after_ms`,
    );
  }
}

/**
 * The plan was issued under the measured root: challenge ids, the root's signature over the signer, the
 * signer's over the plan, and the signer's window at the time of issue.
 * @throws plan_challenge_mismatch, signer_signature_invalid, signer_outside_window, plan_signature_invalid.
 */
export function verifyPlanSignatures(plan: EvalPlan, root: PlanRoot): void {
  if (plan.challenge_id !== root.challengeId || plan.signer.challenge_id !== root.challengeId) {
    throw new EvaluatorError(
      'plan_challenge_mismatch',
      `plan: challenge_id is "${plan.challenge_id}", this guest serves "${root.challengeId}"`,
    );
  }
  verifySigner({ name: 'plan', signer: plan.signer, issuedAtMs: plan.issued_at_ms }, root);
  if (
    !verify(
      null,
      signedBytes(PLAN_CONTEXT, unsignedPlan(plan)),
      ed25519Key(plan.signer.public_key),
      Buffer.from(plan.plan_signature, 'hex'),
    )
  ) {
    throw new EvaluatorError('plan_signature_invalid', "plan: plan_signature is not the signer's");
  }
}

/**
 * The plan may still be run at `nowMs` (milliseconds since the epoch, by the guest's clock; the challenge
 * judges again by its own). Five minutes of clock difference are allowed at the start.
 * @throws plan_expired, plan_not_yet_valid.
 */
export function verifyPlanWindow(plan: EvalPlan, nowMs: number): void {
  const skewMs = 5 * 60_000;
  if (!Number.isFinite(nowMs) || nowMs + skewMs < plan.issued_at_ms) {
    throw new EvaluatorError('plan_not_yet_valid', 'plan: issued_at_ms lies in the future of this clock');
  }
  if (nowMs >= plan.expires_at_ms) {
    throw new EvaluatorError(
      'plan_expired',
      `plan: expired at ${new Date(plan.expires_at_ms).toISOString()}; ask the challenge for a new one`,
    );
  }
}
