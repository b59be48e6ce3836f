import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CollateralSource } from '../../../challenge/accept.ts';
import { REVIEW_FRESH_MS } from '../../../challenge/review/gate.ts';
import { NO_REVIEWS, UNREVIEWED } from '../../../challenge/reviews.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { parseReviewSubmission } from '../../../guest/wire/review.ts';
import { AGENT, type ReviewChallenge, reviewChallenge } from '../../support/review-challenge.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';
import { NOW_MS } from '../../support/valid-result.ts';
import { replyWith } from '../../support/valid-review.ts';

const HASH = sha256Hex(AGENT);
let challenge: ReviewChallenge;
let source: CollateralSource | null;
beforeEach(async () => {
  source = null;
  challenge = await reviewChallenge();
});
afterEach(() => challenge.close());

const refusal = (nowMs = NOW_MS) => rejectionCode(challenge.gate.admit(HASH, nowMs));
/** Somebody who can write the database. */
function meddle(sql: string, ...values: (string | Buffer)[]): void {
  const raw = new DatabaseSync(challenge.path);
  raw.exec('PRAGMA foreign_keys = OFF');
  raw.prepare(sql).run(...values);
  raw.close();
}
function storedReport(): Buffer {
  const file = challenge.ledger.newestConcluded(HASH);
  return file?.report?.reportBytes ?? Buffer.alloc(0);
}

describe('an accepted allow', () => {
  it('admits its agent for a day, under its digest', async () => {
    expect(await challenge.prepare().deliver()).toBe('allowed');
    const { review_digest: digest } = parseReviewSubmission(storedReport()).report;
    expect(await challenge.gate.admit(HASH, NOW_MS)).toEqual({ digest });
    expect(await challenge.gate.admit(HASH, NOW_MS + REVIEW_FRESH_MS)).toEqual({ digest });
    expect(await refusal(NOW_MS + REVIEW_FRESH_MS + 1)).toBe('review_stale');
    challenge.gate.verifyStanding(digest);
  });

  it('is as old as its quote says, whatever the database says of its receipt', async () => {
    await challenge.prepare().deliver();
    meddle(`UPDATE review_reports SET received_at_ms = received_at_ms + ${REVIEW_FRESH_MS}`);
    expect(await refusal(NOW_MS + REVIEW_FRESH_MS + 1)).toBe('review_times_invalid');
    meddle(`UPDATE review_reports SET received_at_ms = received_at_ms - ${REVIEW_FRESH_MS - 1000}`);
    expect(await refusal(NOW_MS + REVIEW_FRESH_MS + 1)).toBe('review_stale');
    expect(await refusal(NOW_MS - 1)).toBe('review_from_future');
  });

  it('is for its own agent alone', async () => {
    await challenge.prepare().deliver();
    const other = sha256Hex('another agent');
    expect(await rejectionCode(challenge.gate.admit(other, NOW_MS))).toBe('review_missing');
    meddle('UPDATE review_sessions SET agent_hash = ?', other);
    expect(await rejectionCode(challenge.gate.admit(other, NOW_MS))).toBe('review_agent_mismatch');
  });

  it('whose bytes were changed in the database admits nobody', async () => {
    await challenge.prepare().deliver({ response: replyWith('allow') });
    const changed = Buffer.from(storedReport().toString().replace('"files":2', '"files":3'));
    meddle('UPDATE review_reports SET report = ?', changed);
    expect(await refusal()).toBe('review_bytes_changed');
    // With a digest to match, the quote still tells.
    meddle('UPDATE review_reports SET report_sha256 = ?', sha256Hex(changed));
    expect(await refusal()).toBe('report_data_mismatch');
  });

  it('whose assignment or announcement was changed in the database admits nobody', async () => {
    await challenge.prepare().deliver();
    const file = challenge.ledger.newestConcluded(HASH);
    const bytes = file?.assignment?.assignmentBytes ?? Buffer.alloc(0);
    const changed = Buffer.from(bytes.toString().replace('"rules-1"', '"rules-2"'));
    meddle('UPDATE review_assignments SET assignment = ?', changed);
    expect(await refusal()).toBe('assignment_signature_invalid');
    meddle('UPDATE review_assignments SET assignment = ?', bytes);
    meddle('DROP TRIGGER review_announcements_stay');
    meddle('DELETE FROM review_announcements');
    expect(await refusal()).toBe('review_call_mismatch');
  });

  it('is no flag: without bytes, or over those of a reject, it admits nobody', async () => {
    challenge.create();
    meddle("UPDATE review_sessions SET state = 'allowed'");
    expect(await refusal()).toBe('review_bytes_missing');
    await challenge.close();
    challenge = await reviewChallenge();
    expect(await challenge.prepare().deliver({ response: replyWith('reject') })).toBe('rejected');
    expect(await refusal()).toBe('review_not_allowed');
    meddle("UPDATE review_sessions SET state = 'allowed'");
    meddle("UPDATE review_verdicts SET verdict = 'allow'");
    expect(await refusal()).toBe('review_not_allowed');
  });

  it('that was taken back admits nobody and stands for nothing', async () => {
    await challenge.prepare().deliver();
    const { digest } = await challenge.gate.admit(HASH, NOW_MS);
    const sessionId = challenge.ledger.sessionOf(digest)?.sessionId ?? '';
    challenge.ledger.revoke(sessionId, 'it reads the tests after all', NOW_MS);
    expect(await refusal()).toBe('review_revoked');
    expect(codeOf(() => challenge.gate.verifyStanding(digest))).toBe('review_revoked');
    challenge.ledger.reopen(sessionId, 'to be reviewed under newer rules', NOW_MS);
    expect(await refusal()).toBe('review_missing');
    expect(codeOf(() => challenge.gate.verifyStanding(digest))).toBe('review_revoked');
    expect(codeOf(() => challenge.gate.verifyStanding(sha256Hex('none')))).toBe('review_missing');
  });

  it('gives way to a newer end of the same agent', async () => {
    await challenge.prepare().deliver();
    const next = challenge.prepare();
    await challenge.gate.admit(HASH, NOW_MS);
    expect(await next.deliver({ response: replyWith('escalate') })).toBe('escalated');
    expect(await refusal()).toBe('review_not_allowed');
  });

  it('is not believed while nothing can be verified', async () => {
    await challenge.close();
    challenge = await reviewChallenge({
      collateral: async (quote) => (source ? source(quote) : challenge.platform.collateral),
    });
    await challenge.prepare().deliver();
    source = async () => {
      throw new EvaluatorError('collateral_unavailable', 'the collateral service does not answer');
    };
    expect(await refusal()).toBe('collateral_unavailable');
    source = null;
    await challenge.gate.admit(HASH, NOW_MS);
  });
});

it('without reviews nobody is admitted; at a desk, under a digest that is no review', async () => {
  expect(await refusal()).toBe('review_missing');
  expect(await rejectionCode(NO_REVIEWS.admit(HASH, NOW_MS))).toBe('review_missing');
  expect(codeOf(() => NO_REVIEWS.verifyStanding(HASH))).toBe('review_missing');
  const { digest } = await UNREVIEWED.admit(HASH, NOW_MS);
  expect(codeOf(() => challenge.gate.verifyStanding(digest))).toBe('review_missing');
});
