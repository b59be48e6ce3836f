import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  encodeReviewFile,
  fileReview,
  parseReviewFile,
  revokeReviewFile,
} from '../../../challenge/review/file.ts';
import { beginRevocations, revocationsBeside } from '../../../challenge/review/revocations.ts';
import type { ReviewStore } from '../../../challenge/reviews.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';
import { NOW_MS } from '../../support/valid-result.ts';
import { AGENT_HASH, type ValidReview, validReview } from '../../support/valid-review.ts';

let valid: ValidReview;
let path: string;
let store: ReviewStore;
beforeAll(async () => {
  valid = await validReview();
});
beforeEach(() => {
  path = join(scratchFolder(), 'review.json');
  writeFileSync(path, encodeReviewFile(valid.input));
  beginRevocations(revocationsBeside(path));
  store = fileReview(path, { ...valid.input, collateral: async () => valid.platform.collateral });
});
const nowMs = NOW_MS + 30;
const refusal = (agentHash = AGENT_HASH) => rejectionCode(store.admit(agentHash, nowMs));
const listed = () => JSON.parse(readFileSync(revocationsBeside(path), 'utf8')).revocations;

describe('a review file', () => {
  it('admits its agent, and carries the exact bytes', async () => {
    const { reportBytes, assignmentBytes } = parseReviewFile(readFileSync(path));
    expect(reportBytes).toEqual(valid.input.reportBytes);
    expect(assignmentBytes).toEqual(valid.input.assignmentBytes);
    expect(await store.admit(AGENT_HASH, nowMs)).toEqual({ digest: valid.submission.report.review_digest });
    expect(await refusal(sha256Hex('another agent'))).toBe('review_agent_mismatch');
  });

  it('that cannot be read, or is none, admits nobody', async () => {
    writeFileSync(path, '{}');
    expect(await refusal()).toBe('schema_invalid');
    rmSync(path);
    expect(await refusal()).toBe('review_missing');
  });
});

describe('a review that was taken back', () => {
  it('admits nobody any more, and no RESULT of what it admitted', async () => {
    const { digest } = await store.admit(AGENT_HASH, nowMs);
    store.verifyStanding(digest);
    expect(revokeReviewFile(path, 'it reads the tests after all', nowMs)).toBe(digest);
    expect(await refusal()).toBe('review_revoked');
    expect(codeOf(() => store.verifyStanding(digest))).toBe('review_revoked');
    store.verifyStanding(sha256Hex('another review'));
  });

  it('stays so: it is listed once, with its first reason, and a restart begins no new list', async () => {
    const digest = revokeReviewFile(path, 'first', nowMs);
    revokeReviewFile(path, 'second', nowMs + 1);
    beginRevocations(revocationsBeside(path));
    expect(listed()).toEqual([{ review_digest: digest, reason: 'first', revoked_at_ms: nowMs }]);
    expect(await refusal()).toBe('review_revoked');
  });

  it('is not lost to another that is taken back meanwhile', () => {
    const next = `${revocationsBeside(path)}.new`;
    writeFileSync(next, '');
    expect(codeOf(() => revokeReviewFile(path, 'a reason', nowMs))).toBe('review_revocations_busy');
    rmSync(next);
    revokeReviewFile(path, 'a reason', nowMs);
    expect(listed()).toHaveLength(1);
    expect(existsSync(next)).toBe(false);
  });

  it('needs a reason', () => {
    for (const reason of ['', ' ', 'a\nb']) {
      expect(codeOf(() => revokeReviewFile(path, reason, nowMs))).toBe('reopen_reason_invalid');
    }
    expect(listed()).toEqual([]);
  });

  it.each([
    ['is not there', null, 'review_revocations_missing'],
    ['is no list', '{}', 'schema_invalid'],
    ['is cut', '{"revocations":[', 'json_malformed'],
  ])('cannot be told from others where the list %s: nobody is admitted', async (_, text, code) => {
    if (text === null) rmSync(revocationsBeside(path));
    else writeFileSync(revocationsBeside(path), text);
    expect(await refusal()).toBe(code);
    expect(codeOf(() => store.verifyStanding(valid.submission.report.review_digest))).toBe(code);
    expect(codeOf(() => revokeReviewFile(path, 'a reason', nowMs))).toBe(code);
  });
});
