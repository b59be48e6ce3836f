import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  fileReviews,
  NO_REVIEWS,
  REVIEW_FRESH_MS,
  type ReviewRecord,
  type ReviewStore,
  revokeReview,
  signReviewRecord,
  writeReview,
} from '../../challenge/reviews.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { digest, sha256Hex } from '../../guest/wire/digest.ts';
import { ed25519PublicHex } from '../../guest/wire/plan-signature.ts';
import { codeOf } from '../support/throws.ts';
import { NOW_MS } from '../support/valid-result.ts';

const AGENT = sha256Hex('agent');
const key = generateKeyPairSync('ed25519').privateKey;
let directory: string;
let reviews: ReviewStore;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'reviews-'));
  reviews = fileReviews(directory, ed25519PublicHex(key));
});

function record(overrides: Partial<ReviewRecord> = {}, by = key): ReviewRecord {
  const { signature: _, ...unsigned } = {
    schema_version: 1 as const,
    agent_hash: AGENT,
    verdict: 'allow' as const,
    issued_at_ms: NOW_MS,
    report: '00',
    signature: '',
    ...overrides,
  };
  return signReviewRecord(unsigned, by);
}
const path = () => join(directory, `${AGENT}.json`);

describe('a review', () => {
  it('that allows admits its agent for a day, under its digest', () => {
    const kept = record();
    writeReview(directory, kept);
    expect(reviews.admit(AGENT, NOW_MS)).toEqual({ digest: digest(kept) });
    expect(reviews.admit(AGENT, NOW_MS + REVIEW_FRESH_MS)).toEqual({ digest: digest(kept) });
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS + REVIEW_FRESH_MS + 1))).toBe('review_stale');
  });

  it('must be there', () => {
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_missing');
    expect(codeOf(() => NO_REVIEWS.admit(AGENT, NOW_MS))).toBe('review_missing');
  });

  it.each(['reject', 'escalate'] as const)('that says %s admits nobody', (verdict) => {
    writeReview(directory, record({ verdict }));
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_not_allowed');
  });

  it('from after this clock admits nobody', () => {
    writeReview(directory, record({ issued_at_ms: NOW_MS + 60_001 }));
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_from_future');
  });

  it('that was revoked admits nobody, and stands for nothing', () => {
    const kept = record();
    writeReview(directory, kept);
    reviews.verifyStanding(digest(kept));
    revokeReview(directory, digest(kept));
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_revoked');
    expect(codeOf(() => reviews.verifyStanding(digest(kept)))).toBe('review_revoked');
  });

  it('is verified anew from its bytes, every time', () => {
    writeReview(directory, record({ verdict: 'reject' }));
    const flipped = readFileSync(path(), 'utf8').replace('reject', 'allow');
    writeFileSync(path(), flipped);
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_signature_invalid');
    const stranger = generateKeyPairSync('ed25519').privateKey;
    writeFileSync(path(), encodeCanonical(record({}, stranger)));
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_signature_invalid');
    writeFileSync(path(), encodeCanonical(record({ agent_hash: sha256Hex('another') })));
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_malformed');
    writeFileSync(path(), '{');
    expect(codeOf(() => reviews.admit(AGENT, NOW_MS))).toBe('review_malformed');
  });
});
