import { createPublicKey, verify as edVerify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { type EvalPlan, MAX_PLAN_BYTES, parsePlan, planDigest } from '../../../guest/wire/plan.ts';
import { verifyPlanSignatures, verifyPlanWindow } from '../../../guest/wire/plan-signature.ts';
import { CHALLENGE_ID, ISSUED_AT_MS, planKeys, planTask, RANKED, signedPlan } from '../../support/plan.ts';
import { codeOf } from '../../support/throws.ts';

const keys = planKeys();
const plan = signedPlan(keys);
const parse = (value: unknown) => parsePlan(encodeCanonical(value));
const planOf = (overrides: Partial<EvalPlan>) => signedPlan(keys, overrides);

describe('parsePlan', () => {
  it('reads a plan, ranked or not', () => {
    expect(parse(plan)).toEqual(plan);
    expect(parse(planOf(RANKED)).ranked).toBe(true);
  });

  const url = (path: string) => `https://127.0.0.1:8443${path}`;
  it.each<[string, Partial<EvalPlan>]>([
    ['tasks out of order', { tasks: [planTask('b'), planTask('a')] }],
    ['a task twice', { tasks: [planTask('a'), planTask('a')] }],
    ['an empty window', { expires_at_ms: ISSUED_AT_MS }],
    ['compose hashes that differ', { eval_app: { ...plan.eval_app, compose_hash: '0'.repeat(64) } }],
    ['one nonce for two purposes', { ...RANKED, score_nonce: 'key-nonce-001' }],
    [
      'a key release for another run',
      { key_release: { url: url('/key-release/v1/runs/run-002'), nonce: 'n' } },
    ],
    ['a result for another run', { result: { url: url('/evaluation/v1/runs/run-002/result') } }],
    ['a result with a query', { result: { url: url('/evaluation/v1/runs/run-001/result?x') } }],
    ['terminal-bench without policy', { policy: null }],
    ['a policy on another track', { track: 'skills', policy: 'vote' }],
    ['ranked without key release', { ...RANKED, key_release: null }],
    ['ranked without review', { ...RANKED, authorizing_review_digest: null }],
    ['ranked with an open network', { ...RANKED, tasks: [planTask('a', { network: 'open' })] }],
  ])('refuses %s', (_, overrides) => {
    expect(codeOf(() => parse(planOf(overrides)))).toBe('plan_inconsistent');
  });

  it('lets an unranked plan have an open network', () => {
    expect(parse(planOf({ tasks: [planTask('a', { network: 'open' })] })).tasks[0]?.network).toBe('open');
  });

  it('escapes a run id in its URLs', () => {
    const eval_run_id = 'run/1?';
    const result = { url: url('/evaluation/v1/runs/run%2F1%3F/result') };
    expect(parse(planOf({ eval_run_id, result })).eval_run_id).toBe(eval_run_id);
  });

  it.each<[string, object]>([
    ['concurrency 0', { n_concurrent: 0 }],
    ['concurrency 65', { n_concurrent: 65 }],
    ['no reps', { r: 0 }],
    ['no tasks', { tasks: [] }],
    ['an http URL', { result: { url: 'http://127.0.0.1/evaluation/v1/runs/run-001/result' } }],
    ['an image by tag', { tasks: [planTask('a', { image: 'python:3.12' })] }],
    ['a task id that leaves its folder', { tasks: [planTask('../a')] }],
    ['an upper-case digest', { cache_digest: 'A'.repeat(64) }],
    ['an empty id', { eval_run_id: '' }],
    ['an id with a space', { submission_id: 'a b' }],
    ['no PEM', { server_ca_pem: 'none' }],
    ['another version', { schema_version: 1 }],
    ['a string for a boolean', { ranked: 'true' }],
    ['an unknown member', { extra: 1 }],
    ['an unknown member deep inside', { agent: { ...plan.agent, extra: 1 } }],
  ])('refuses %s by its schema', (_, change) => {
    expect(codeOf(() => parse({ ...plan, ...change }))).toBe('schema_invalid');
  });

  it('refuses each member when it is missing', () => {
    for (const key of Object.keys(plan)) {
      const { [key as keyof EvalPlan]: _, ...rest } = plan;
      expect(
        codeOf(() => parse(rest)),
        key,
      ).toBe('schema_invalid');
    }
  });

  it('refuses __proto__ as a member', () => {
    const spelled = encodeCanonical(plan).toString().replace('{', '{"__proto__":{},');
    expect(codeOf(() => parsePlan(Buffer.from(spelled)))).toBe('schema_invalid');
  });

  it('refuses bytes that are not canonical, or too many', () => {
    expect(codeOf(() => parsePlan(Buffer.concat([encodeCanonical(plan), Buffer.from('\n')])))).toBe(
      'json_not_canonical',
    );
    expect(codeOf(() => parsePlan(Buffer.alloc(MAX_PLAN_BYTES + 1, 0x20)))).toBe('json_too_large');
  });
});

describe('planDigest', () => {
  it('covers everything but the signature', () => {
    expect(planDigest({ ...plan, plan_signature: '0'.repeat(128) })).toBe(planDigest(plan));
    expect(planDigest({ ...plan, r: 5 })).not.toBe(planDigest(plan));
  });
});

describe('verifyPlanSignatures', () => {
  const verify = (one: EvalPlan, root = keys.planRoot) => codeOf(() => verifyPlanSignatures(one, root));

  it('accepts a plan of the measured root', () => {
    expect(() => verifyPlanSignatures(parse(plan), keys.planRoot)).not.toThrow();
  });

  const { plan_signature: signature, signer, ...body } = plan;
  it.each(Object.keys(body).filter((key) => key !== 'challenge_id' && key !== 'issued_at_ms'))(
    'refuses a changed %s',
    (key) => {
      expect(verify({ ...plan, [key]: 'changed' } as EvalPlan)).toBe('plan_signature_invalid');
    },
  );

  it.each(Object.keys(signer).filter((key) => key !== 'challenge_id' && key !== 'root_signature'))(
    'refuses a changed signer.%s',
    (key) => {
      const value = key === 'public_key' ? '0'.repeat(64) : ISSUED_AT_MS;
      expect(verify({ ...plan, signer: { ...signer, [key]: value } })).toBe('signer_signature_invalid');
    },
  );

  it('refuses changed signatures', () => {
    const flipped = (hex: string) => (hex.startsWith('0') ? '1' : '0') + hex.slice(1);
    expect(verify({ ...plan, plan_signature: flipped(signature) })).toBe('plan_signature_invalid');
    const tampered = { ...signer, root_signature: flipped(signer.root_signature) };
    expect(verify({ ...plan, signer: tampered })).toBe('signer_signature_invalid');
  });

  it('refuses a signature made for the other purpose', () => {
    expect(verify({ ...plan, plan_signature: signer.root_signature })).toBe('plan_signature_invalid');
  });

  it('refuses another challenge, by the plan, its signer or the root', () => {
    expect(verify(planOf({ challenge_id: 'other' }))).toBe('plan_challenge_mismatch');
    expect(verify({ ...plan, signer: { ...signer, challenge_id: 'other' } })).toBe('plan_challenge_mismatch');
    expect(verify(plan, { ...keys.planRoot, challengeId: 'other' })).toBe('plan_challenge_mismatch');
  });

  it('covers the context, a zero byte and the canonical document', () => {
    const { root_signature: rootSignature, ...statement } = signer;
    const unsigned = { ...body, signer };
    const covered = (context: string, document: object) =>
      Buffer.concat([Buffer.from(context), Buffer.of(0), encodeCanonical(document)]);
    const planBytes = covered('cvm-evaluator/plan/v2', unsigned);
    expect(edVerify(null, planBytes, createPublicKey(keys.signer), Buffer.from(signature, 'hex'))).toBe(true);
    const signerBytes = covered('cvm-evaluator/signer/v1', statement);
    expect(edVerify(null, signerBytes, createPublicKey(keys.root), Buffer.from(rootSignature, 'hex'))).toBe(
      true,
    );
  });

  it("refuses another challenge's root, and a signer that the root never signed", () => {
    const others = planKeys();
    expect(verify(plan, others.planRoot)).toBe('signer_signature_invalid');
    expect(verify(signedPlan({ ...keys, root: others.root }))).toBe('signer_signature_invalid');
    expect(
      verify({ ...plan, plan_signature: signedPlan({ ...keys, signer: others.signer }).plan_signature }),
    ).toBe('plan_signature_invalid');
  });

  it('refuses a plan issued outside the window of its signer, ends included', () => {
    for (const ms of [ISSUED_AT_MS - 1000, ISSUED_AT_MS + 1000]) {
      const edge = planOf({ issued_at_ms: ms, challenge_id: CHALLENGE_ID });
      expect(() => verifyPlanSignatures(edge, keys.planRoot)).not.toThrow();
    }
    expect(verify(planOf({ issued_at_ms: ISSUED_AT_MS - 1001 }))).toBe('signer_outside_window');
    expect(verify(planOf({ issued_at_ms: ISSUED_AT_MS + 1001 }))).toBe('signer_outside_window');
  });

  it.each(['00', 'ff', 'ee'])('refuses a root key of %s bytes by code, not by a crash', (byte) => {
    expect(verify(plan, { ...keys.planRoot, publicKey: byte.repeat(32) })).toBe('signer_signature_invalid');
  });
});

describe('verifyPlanWindow', () => {
  it('is open from five minutes before issue until just before expiry', () => {
    expect(() => verifyPlanWindow(plan, ISSUED_AT_MS - 300_000)).not.toThrow();
    expect(() => verifyPlanWindow(plan, plan.expires_at_ms - 1)).not.toThrow();
    expect(codeOf(() => verifyPlanWindow(plan, ISSUED_AT_MS - 300_001))).toBe('plan_not_yet_valid');
    expect(codeOf(() => verifyPlanWindow(plan, plan.expires_at_ms))).toBe('plan_expired');
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])('refuses the time %d', (now) => {
    expect(codeOf(() => verifyPlanWindow(plan, now))).toBe('plan_not_yet_valid');
  });
});
