import { describe, expect, it } from 'vitest';
import { composeHash } from '../../../compose/app-compose.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { readAwaited } from '../../../scripts/deploy/awaited.ts';
import { exitCodeOfWord, isOpen } from '../../../scripts/deploy/verdict.ts';
import { IMAGE, planned } from '../../support/deployment.ts';
import { PEM } from '../../support/plan.ts';
import { codeOf } from '../../support/throws.ts';

function deployed(overrides: Partial<EvalPlan> = {}) {
  const { composed, appCompose, values, plan } = planned(overrides);
  return {
    what: { composed, composeHash: composeHash(appCompose), instanceType: 'tdx.small' },
    values,
    plan,
  };
}

describe('readAwaited', () => {
  it('asks the signed plan’s challenge under its CA', () => {
    const { what, values } = deployed();
    expect(readAwaited(what, values, Date.now())).toMatchObject({
      role: 'eval',
      url: 'https://127.0.0.1:8443/evaluation/v1/runs/run-001',
      caPem: PEM,
      evalRunId: 'run-001',
    });
  });

  it('refuses what the plan does not order', () => {
    const { what, values } = deployed();
    const refusal = (changed: Partial<typeof what>) =>
      codeOf(() => readAwaited({ ...what, ...changed }, values, Date.now()));
    expect(refusal({ composeHash: 'f'.repeat(64) })).toBe('deploy_not_planned');
    expect(refusal({ instanceType: 'tdx.xlarge' })).toBe('deploy_not_planned');
    const image = IMAGE.replace(/a$/, 'b');
    expect(refusal({ composed: { ...what.composed, imageRef: image } })).toBe('deploy_not_planned');
  });

  it('refuses what the guest would refuse', () => {
    const { what, values, plan } = deployed();
    const other = deployed();
    const code = (changed: Record<string, string>, nowMs = Date.now()) =>
      codeOf(() => readAwaited(what, { ...values, ...changed }, nowMs));
    expect(code({ EVAL_RUN_TOKEN: 'another' })).toBe('run_token_mismatch');
    expect(code({}, plan.expires_at_ms)).toBe('plan_expired');
    expect(code({ EVAL_PLAN: other.values.EVAL_PLAN ?? '' })).toBe('signer_signature_invalid');
    expect(code({ EVAL_PLAN: 'e30' })).toBe('schema_invalid');
  });

  it('asks a review’s session', () => {
    const composed = {
      role: 'review' as const,
      imageRef: IMAGE,
      planRoot: { publicKey: 'b'.repeat(64), challengeId: 'c' },
      localArguments: [],
      keyProviderId: null,
    };
    const what = { composed, composeHash: 'a'.repeat(64), instanceType: 'tdx.small' };
    const values = {
      REVIEW_API_BASE_URL: 'https://challenge.example:8443',
      REVIEW_SESSION_TOKEN: `assignment-1.${'0'.repeat(64)}`,
    };
    expect(readAwaited(what, values, 0)).toMatchObject({
      url: 'https://challenge.example:8443/review/v1/assignments/assignment-1/state',
      caPem: null,
      evalRunId: null,
    });
    const ca = Buffer.from(PEM).toString('base64url');
    expect(readAwaited(what, { ...values, REVIEW_SERVER_CA: ca }, 0).caPem).toBe(PEM);
    const code = (changed: Record<string, string>) =>
      codeOf(() => readAwaited(what, { ...values, ...changed }, 0));
    expect(code({ REVIEW_API_BASE_URL: 'http://challenge.example' })).toBe('schema_invalid');
    expect(code({ REVIEW_SESSION_TOKEN: 'x' })).toBe('review_token_malformed');
    expect(code({ REVIEW_SERVER_CA: 'e30' })).toBe('schema_invalid');
  });
});

describe('a challenge’s word', () => {
  const word = (state: string) => ({ state, reasonCode: null, scoreF64be: null });

  it.each([
    ['eval', 'accepted', 0],
    ['eval', 'rejected', 1],
    ['review', 'allowed', 0],
    ['review', 'rejected', 1],
    ['review', 'escalated', 1],
    ['review', 'trust_failed', 3],
  ] as const)('of a %s that is %s ends with %i', (role, state, code) => {
    expect(exitCodeOfWord(role, word(state))).toBe(code);
  });

  it.each(['expired', 'no_result', 'reopened', 'failed', 'constructor', 'allowed'])(
    'ends an eval that is %s without a judgement',
    (state) => {
      expect(isOpen(word(state))).toBe(false);
      expect(codeOf(() => exitCodeOfWord('eval', word(state)))).toBe('deploy_no_result');
    },
  );
});
