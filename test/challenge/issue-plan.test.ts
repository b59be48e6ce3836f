import { generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Issuer, issuePlan, type PlanOrder, planRootOf } from '../../challenge/issue-plan.ts';
import { parsePlan } from '../../guest/wire/plan.ts';
import { verifyPlanSignatures, verifyPlanWindow } from '../../guest/wire/plan-signature.ts';
import { codeOf } from '../support/throws.ts';
import { NOW_MS, signedPlan, testPlatform } from '../support/valid-result.ts';

let order: PlanOrder;
const issuer: Issuer = {
  challengeId: 'issuer-test',
  rootKey: generateKeyPairSync('ed25519').privateKey,
  signerKey: generateKeyPairSync('ed25519').privateKey,
  epochSecret: Buffer.alloc(32, 3),
};
beforeAll(async () => {
  const { plan } = signedPlan(await testPlatform());
  const { schema_version, challenge_id, signer, plan_signature, selection_seed, tasks, ...rest } = plan;
  expect([schema_version, challenge_id, signer, plan_signature, selection_seed]).toHaveLength(5);
  const draw = { hotkey: 'h', agentHash: 'a', cacheId: 'c', mechanismDigest: 'm' };
  order = { ...rest, candidates: tasks, n: 2, draw };
});

describe('an issued plan', () => {
  it('is canonical, signed under the root, and valid from its issue to its expiry', () => {
    const { plan, planBytes } = issuePlan(order, issuer);
    expect(parsePlan(planBytes)).toEqual(plan);
    verifyPlanSignatures(plan, planRootOf(issuer));
    verifyPlanWindow(plan, NOW_MS);
    expect(codeOf(() => verifyPlanWindow(plan, plan.expires_at_ms))).toBe('plan_expired');
    const stranger = { ...planRootOf(issuer), challengeId: 'another' };
    expect(codeOf(() => verifyPlanSignatures(plan, stranger))).toBe('plan_challenge_mismatch');
  });

  it('draws the same tasks again for the same agent in the same epoch', () => {
    const one = { ...order, n: 1 };
    const first = issuePlan(one, issuer).plan;
    const again = issuePlan({ ...one, eval_run_id: 'run-1', score_nonce: 'another' }, issuer).plan;
    expect(again.tasks).toEqual(first.tasks);
    expect(again.selection_seed).toBe(first.selection_seed);
  });

  it('is refused where a guest would refuse it', () => {
    expect(codeOf(() => issuePlan({ ...order, ranked: true }, issuer))).toBe('plan_inconsistent');
    expect(codeOf(() => issuePlan({ ...order, n_concurrent: 65 }, issuer))).toBe('schema_invalid');
    expect(codeOf(() => issuePlan({ ...order, n: 3 }, issuer))).toBe('selection_impossible');
  });
});
