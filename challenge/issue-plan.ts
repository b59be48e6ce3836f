import type { KeyObject } from 'node:crypto';
import { encodeCanonical } from '../guest/wire/canonical.ts';
import { type EvalPlan, parsePlan } from '../guest/wire/plan.ts';
import { ed25519PublicHex, type PlanRoot, signPlan, signSigner } from '../guest/wire/plan-signature.ts';
import { type DrawSubject, selectionSeed, selectTasks } from './select.ts';

/** How long a signer may issue plans after it was certified. */
const SIGNER_LIFE_MS = 30 * 86_400_000;

/** Private keys and secrets that a plan is issued under. */
export interface Issuer {
  challengeId: string;
  rootKey: KeyObject;
  signerKey: KeyObject;
  /** Renewed each epoch: draws of another epoch cannot be foretold. */
  epochSecret: Buffer;
}

/** Everything a plan says that is not derived here. */
export type PlanOrder = Omit<
  EvalPlan,
  'schema_version' | 'challenge_id' | 'signer' | 'plan_signature' | 'selection_seed' | 'tasks'
> & {
  /** The cache's tasks, of which `n` are drawn. */
  candidates: EvalPlan['tasks'];
  n: number;
  draw: DrawSubject;
};

export interface IssuedPlan {
  plan: EvalPlan;
  /** Canonical; what travels and what the ledger keeps. */
  planBytes: Buffer;
}

/** The public half that a guest is measured with. */
export function planRootOf(issuer: Issuer): PlanRoot {
  return { publicKey: ed25519PublicHex(issuer.rootKey), challengeId: issuer.challengeId };
}

/**
 * Draws the tasks, certifies the signer and signs a plan; it is read back as a guest would read it.
 * @throws selection_impossible, schema_invalid, plan_inconsistent, json_too_large.
 */
export function issuePlan(order: PlanOrder, issuer: Issuer): IssuedPlan {
  const { candidates, n, draw, ...rest } = order;
  const seed = selectionSeed(issuer.epochSecret, draw);
  const signer = signSigner(
    {
      public_key: ed25519PublicHex(issuer.signerKey),
      challenge_id: issuer.challengeId,
      not_before_ms: rest.issued_at_ms,
      not_after_ms: rest.issued_at_ms + SIGNER_LIFE_MS,
    },
    issuer.rootKey,
  );
  const unsigned = {
    ...rest,
    schema_version: 2 as const,
    challenge_id: issuer.challengeId,
    signer,
    selection_seed: seed,
    tasks: selectTasks(candidates, seed, n),
  };
  const planBytes = encodeCanonical(signPlan(unsigned, issuer.signerKey));
  return { plan: parsePlan(planBytes), planBytes };
}
