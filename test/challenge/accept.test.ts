import { afterEach, describe, expect, it } from 'vitest';
import type { CollateralSource } from '../../challenge/accept.ts';
import { PARKED_FOR_MS } from '../../challenge/ledger/parking.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { type TestChallenge, testChallenge } from '../support/challenge-in-process.ts';
import { withTcbInfo } from '../support/evidence.ts';
import { MECHANISM_BYTES, NOW_MS, testPlatform } from '../support/valid-result.ts';

let challenge: TestChallenge;
afterEach(() => challenge.close());

function outage(): never {
  throw new EvaluatorError('collateral_unavailable', 'the collateral service does not answer');
}

describe('a verifier outage', () => {
  it('parks the receipt, which is judged when the verifier is back', async () => {
    const platform = await testPlatform();
    let source: CollateralSource = async () => outage();
    challenge = await testChallenge({ collateral: (quote) => source(quote) }, platform);
    expect((await challenge.post(challenge.body)).status).toBe(202);
    expect(await challenge.state()).toMatchObject({ state: 'parked', reason_code: 'collateral_unavailable' });
    expect((await challenge.post(Buffer.from(challenge.body))).status).toBe(200);

    challenge.acceptor.enqueueOpen();
    expect(await challenge.state()).toMatchObject({ state: 'parked' });

    source = async () => platform.collateral;
    challenge.acceptor.enqueueOpen();
    expect(await challenge.state()).toMatchObject({ state: 'accepted', reason_code: null });
  });

  it('of a whole day closes the run without a score', async () => {
    challenge = await testChallenge({ collateral: async () => outage() });
    await challenge.post(challenge.body);
    await challenge.state();
    challenge.ledger.closeOverdue(NOW_MS + PARKED_FOR_MS - 1, PARKED_FOR_MS);
    expect(await challenge.state()).toMatchObject({ state: 'parked' });
    challenge.ledger.closeOverdue(NOW_MS + PARKED_FOR_MS, PARKED_FOR_MS);
    expect(await challenge.state()).toMatchObject({
      state: 'expired',
      reason_code: 'collateral_unavailable',
      score_f64be: null,
    });
  });

  it("is not an unknown platform, and not the sender's forgery", async () => {
    const other = await testPlatform({ seed: Buffer.alloc(32, 7) });
    challenge = await testChallenge({ rootDer: other.rootDer });
    await challenge.post(challenge.body);
    expect(await challenge.state()).toMatchObject({ state: 'rejected', reason_code: 'root_not_trusted' });
  });

  it("stale or broken collateral is the challenge's own fault: parked", async () => {
    const platform = await testPlatform();
    const stale = withTcbInfo(platform, (info) => {
      info.nextUpdate = '2026-02-01T00:00:00Z';
    });
    challenge = await testChallenge({ collateral: async () => stale }, platform);
    await challenge.post(challenge.body);
    expect(await challenge.state()).toMatchObject({ state: 'parked', reason_code: 'collateral_expired' });
    await challenge.close();
    const other = await testPlatform({ seed: Buffer.alloc(32, 7) });
    const { tcb_info_issuer_chain } = other.collateral;
    const foreign = { ...platform.collateral, tcb_info_issuer_chain };
    challenge = await testChallenge({ collateral: async () => foreign }, platform);
    await challenge.post(challenge.body);
    expect(await challenge.state()).toMatchObject({ state: 'parked', reason_code: 'collateral_untrusted' });
  });
});

describe("what the challenge itself keeps, and cannot judge by, is not the agent's to lose", () => {
  it('a mechanism or a root that was replaced while the run was open', async () => {
    challenge = await testChallenge({ mechanismBytes: Buffer.concat([MECHANISM_BYTES, Buffer.from('#')]) });
    await challenge.post(challenge.body);
    expect(await challenge.state()).toMatchObject({
      state: 'parked',
      reason_code: 'mechanism_digest_mismatch',
    });
    await challenge.close();
    challenge = await testChallenge({ planRoot: { publicKey: 'ab'.repeat(32), challengeId: 'challenge-1' } });
    await challenge.post(challenge.body);
    expect(await challenge.state()).toMatchObject({ state: 'parked' });
  });

  it.each([
    ['review_revocations_missing', 'parked'],
    ['review_missing', 'parked'],
    ['review_revoked', 'rejected'],
  ] as const)('a review of which it says %s: %s', async (code, state) => {
    const verifyStanding = () => {
      throw new EvaluatorError(code, 'the review');
    };
    const reviewed = { authorizing_review_digest: 'ab'.repeat(32) };
    challenge = await testChallenge({ reviews: { verifyStanding } }, undefined, reviewed);
    await challenge.post(challenge.body);
    expect(await challenge.state()).toMatchObject({ state, reason_code: code });
  });
});

it('an accepted score is told with whether it may carry weight', async () => {
  challenge = await testChallenge({});
  await challenge.post(challenge.body);
  const { score_f64be } = await challenge.state();
  expect(challenge.log).toContainEqual({
    event: 'judged',
    eval_run_id: 'run-1',
    outcome: 'accepted',
    reason_code: null,
    score_f64be,
    eligible: false,
    ineligible_because: 'calibration',
    cut: null,
  });
});

it('a verifier that breaks leaves the run open and says so', async () => {
  challenge = await testChallenge({
    collateral: async () => {
      throw new TypeError('a defect');
    },
  });
  await challenge.post(challenge.body);
  expect(await challenge.state()).toMatchObject({ state: 'received' });
  expect(challenge.log).toContainEqual({
    event: 'verifier_failed',
    eval_run_id: 'run-1',
    detail: 'verifier: a defect',
  });
});
