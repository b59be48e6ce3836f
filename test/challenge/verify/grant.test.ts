import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GrantFacts } from '../../../challenge/ledger/grants.ts';
import { type GrantClaim, verifyGrant } from '../../../challenge/verify/grant.ts';
import { platformOf } from '../../../challenge/verify/ppid.ts';
import { GRANT_CHECK, verifyResult } from '../../../challenge/verify/result.ts';
import { parseEventLog, readRuntimeClaims } from '../../../guest/attest/event-log.ts';
import { parseQuote } from '../../../guest/attest/quote.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { keyReleaseReportData } from '../../../guest/wire/key-release.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import { encodeResult, type Result } from '../../../guest/wire/result.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { type TestChallenge, testChallenge } from '../../support/challenge-in-process.ts';
import { codeOf } from '../../support/throws.ts';
import {
  NOW_MS,
  resultFor,
  scoreRecord,
  signedPlan,
  testPlatform,
  validResult,
} from '../../support/valid-result.ts';

const SEALED: Partial<EvalPlan> = {
  key_release: { url: 'https://127.0.0.1:1/key-release/v1/runs/run-1', nonce: 'key-nonce' },
};
const GRANT = 'ab'.repeat(16);
const SPKI = 'cd'.repeat(32);
const MAX_GRANTS = 2;

let platform: Platform;
let challenge: TestChallenge;
beforeEach(async () => {
  platform = await testPlatform();
  challenge = await testChallenge({}, platform, SEALED);
});
afterEach(() => challenge.close());

function factsOf(overrides: Partial<GrantFacts> = {}): GrantFacts {
  return {
    grantId: GRANT,
    measurement: platform.measurement,
    appId: platform.appId.toString('hex'),
    instanceId: platform.instanceId.toString('hex'),
    platform: platformOf(parseQuote(platform.quote(Buffer.alloc(64), { version: 4 }))),
    ...overrides,
  };
}
function grant(overrides: Partial<GrantFacts> = {}): void {
  const { ledger } = challenge;
  const asked = { nonce: 'key-nonce', spkiDigest: SPKI };
  const { attemptId } = ledger.beginAttempt('run-1', asked, MAX_GRANTS, NOW_MS);
  ledger.grant(attemptId, factsOf(overrides), MAX_GRANTS, NOW_MS);
}
const start = (grantId = GRANT) => challenge.ledger.start('run-1', grantId, SPKI, NOW_MS);
function result(grantId: string | null = GRANT): Result {
  const { plan } = challenge;
  return resultFor(platform, plan, { ...scoreRecord(plan), grant_id: grantId });
}
async function outcome(body: Result): Promise<unknown> {
  expect((await challenge.post(encodeResult(body))).status).toBe(202);
  const { state, reason_code, score_f64be } = await challenge.state();
  return state === 'accepted' ? score_f64be : reason_code;
}

describe('a RESULT of a sealed run', () => {
  it('under its started grant, from the machine that got the keys, is accepted', async () => {
    grant();
    start();
    expect(await outcome(result())).toBe('3ff0000000000000');
  });

  it('without a grant is not', async () => {
    expect(await outcome(result())).toBe('grant_missing');
  });

  it('that names none is not even when there is one', async () => {
    grant();
    start();
    expect(await outcome(result(null))).toBe('record_grant_mismatch');
  });

  it('under a superseded grant is not', async () => {
    grant();
    grant({ grantId: 'ef'.repeat(16) });
    start('ef'.repeat(16));
    expect(await outcome(result())).toBe('grant_superseded');
  });

  it('under a grant whose agents never started is not', async () => {
    grant();
    expect(await outcome(result())).toBe('grant_not_started');
  });

  it.each([
    ['app-id', { appId: '0102' }, 'grant_app_mismatch'],
    ['instance-id', { instanceId: '0102' }, 'grant_instance_mismatch'],
    ['platform', { platform: 'ab'.repeat(32) }, 'grant_platform_mismatch'],
  ])('from another %s than the keys were given to is not', async (_name, facts, code) => {
    grant(facts);
    start();
    expect(await outcome(result())).toBe(code);
  });

  it('with a quote of the key release domain is not received', async () => {
    grant();
    start();
    const reportData = keyReleaseReportData({
      evalRunId: 'run-1',
      nonce: 'key-nonce',
      planDigest: 'ab'.repeat(32),
      spkiDigest: SPKI,
      tlsExporter: 'ab'.repeat(32),
      recipientPublicKey: 'ab'.repeat(32),
    });
    const forged = result();
    const { attestation } = forged.execution_proof;
    const quote = platform.quote(reportData, { version: 4 }).toString('hex');
    for (const change of [
      { tdx_quote: quote },
      { tdx_quote: quote, report_data: reportData.toString('hex') },
    ]) {
      Object.assign(attestation, change);
      expect(await challenge.post(encodeResult(forged))).toMatchObject({
        status: 422,
        json: { reason_code: 'report_data_mismatch' },
      });
    }
  });

  it('of a plan that was swapped after the grant is not', async () => {
    grant();
    start();
    const other = signedPlan(platform, {
      ...SEALED,
      score_nonce: challenge.plan.score_nonce,
      max_grants: 9,
    }).plan;
    expect(await outcome(resultFor(platform, other, { ...scoreRecord(other), grant_id: GRANT }))).toBe(
      'plan_digest_mismatch',
    );
  });

  it('delivered by the first of two machines, after the second got the keys, is not', async () => {
    grant();
    grant({ grantId: 'ef'.repeat(16) });
    expect(codeOf(() => start())).toBe('grant_superseded');
    start('ef'.repeat(16));
    expect(await outcome(result())).toBe('grant_superseded');
  });
});

describe('the review that admitted a run', () => {
  it('counts until the acceptance', async () => {
    await challenge.close();
    const revoked = () => {
      throw new EvaluatorError('review_revoked', 'review: revoked');
    };
    challenge = await testChallenge({ reviews: { verifyStanding: revoked } }, platform, {
      ...SEALED,
      authorizing_review_digest: 'ab'.repeat(32),
    });
    grant();
    start();
    expect(await outcome(result())).toBe('review_revoked');
  });
});

it('every claim is compared, whatever else is right', () => {
  const quote = parseQuote(platform.quote(Buffer.alloc(64), { version: 4 }));
  const claims = readRuntimeClaims(parseEventLog(platform.eventLog));
  const claim: GrantClaim = { grantId: GRANT, quote, claims };
  const kept = {
    ...factsOf(),
    evalRunId: 'run-1',
    attemptId: 1,
    nonce: 'n',
    spkiDigest: SPKI,
    grantedAtMs: 1,
  };
  const started = { evalRunId: 'run-1', grantId: GRANT, receivedAtMs: 2 };
  verifyGrant(claim, { grants: [kept], started });
  expect(codeOf(() => verifyGrant(claim, { grants: [kept], started: { ...started, grantId: 'x' } }))).toBe(
    'grant_not_started',
  );
  expect(codeOf(() => verifyGrant({ ...claim, grantId: null }, { grants: [kept], started }))).toBe(
    'grant_missing',
  );
});

it('offline, a grant is said to be not checked', async () => {
  const { input, platform: machine } = await validResult();
  const signed = signedPlan(machine, SEALED);
  const body = resultFor(machine, signed.plan, { ...scoreRecord(signed.plan), grant_id: GRANT });
  const { verified, checks } = await verifyResult({ ...input, ...signed, resultBytes: encodeResult(body) });
  expect(verified).toBe(true);
  expect(checks.at(-1)).toMatchObject({ name: GRANT_CHECK, status: 'not_checked', code: null });
});
