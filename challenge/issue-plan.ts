import { encodeCanonical } from '../guest/wire/canonical.ts';
import { type EvalPlan, parsePlan } from '../guest/wire/plan.ts';
import { ed25519PublicHex, type PlanRoot, signPlan } from '../guest/wire/plan-signature.ts';
import { type DrawSubject, selectionSeed, selectTasks } from './select.ts';
import { certifySigner, type SigningKeys } from './signer.ts';

/** Private keys and secrets that a plan is issued under. */
export interface Issuer extends SigningKeys {
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
export function planRootOf(issuer: Pick<SigningKeys, 'rootKey' | 'challengeId'>): PlanRoot {
  return { publicKey: ed25519PublicHex(issuer.rootKey), challengeId: issuer.challengeId };
}

/**
 * Draws the tasks, certifies the signer and signs a plan; it is read back as a guest would read it.
 * @throws selection_impossible, schema_invalid, plan_inconsistent, json_too_large.
 */
export function issuePlan(order: PlanOrder, issuer: Issuer): IssuedPlan {
  const { candidates, n, draw, ...rest } = order;
  const seed = selectionSeed(issuer.epochSecret, draw);
  const signer = certifySigner(issuer, rest.issued_at_ms);
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
