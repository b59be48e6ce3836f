import { describe, expect, it } from 'vitest';
import {
  type Assignment,
  assignmentDigest,
  parseAssignment,
  parseSessionToken,
  REVIEW_WINDOW_MS,
  reviewRoutes,
  unsignedAssignment,
  verifyAssignment,
  verifyAssignmentWindow,
} from '../../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { digest } from '../../../guest/wire/digest.ts';
import { changedLeaves, changedShapes } from '../../support/leaves.ts';
import { codeOf } from '../../support/throws.ts';
import { NOW_MS } from '../../support/valid-result.ts';
import { reviewKeys, reviewPlatform, signedAssignment } from '../../support/valid-review.ts';

const platform = await reviewPlatform();
const keys = reviewKeys();
const assignment = signedAssignment(platform, keys);
const refusal = (overrides: Partial<Assignment>) =>
  codeOf(() => parseAssignment(encodeCanonical(signedAssignment(platform, keys, overrides))));

describe('an assignment', () => {
  it('is read, verified, and named by its digest without the signature', () => {
    expect(parseAssignment(encodeCanonical(assignment))).toEqual(assignment);
    verifyAssignment(assignment, keys.root);
    verifyAssignmentWindow(assignment, NOW_MS);
    expect(assignmentDigest(assignment)).toBe(digest(unsignedAssignment(assignment)));
  });

  it.each<[string, Partial<Assignment>]>([
    ['two hashes of one ZIP', { artifact: { ...assignment.artifact, zip_sha256: 'b'.repeat(64) } }],
    ['two compose hashes', { review_app: { ...assignment.review_app, compose_hash: 'b'.repeat(64) } }],
    [
      'two providers',
      { policy: { ...assignment.policy, routing: { ...assignment.policy.routing, only: ['b'] } } },
    ],
    ['a submission after the assignment', { submission_received_at_ms: NOW_MS + 1 }],
    ['no window', { expires_at_ms: NOW_MS }],
    ['a window of more than 30 minutes', { expires_at_ms: NOW_MS + REVIEW_WINDOW_MS + 1 }],
  ])('with %s is inconsistent', (_, overrides) => {
    expect(refusal(overrides)).toBe('assignment_inconsistent');
  });

  it.each<[string, Partial<Assignment>]>([
    ['a plain address', { api_base_url: 'http://127.0.0.1:1' }],
    ['an address with a path', { api_base_url: 'https://127.0.0.1:1/x' }],
    ['an address with a user', { api_base_url: 'https://a@127.0.0.1' }],
    [
      'a path that leaves the origin',
      { rules: { ...assignment.rules, fetch_path: '@elsewhere.invalid/review/v1/x' } },
    ],
    ['a path with dots', { rules: { ...assignment.rules, fetch_path: '/review/v1/../secrets' } }],
    ['a path with a query', { rules: { ...assignment.rules, fetch_path: '/review/v1/x?y' } }],
    [
      'fallbacks',
      {
        policy: {
          ...assignment.policy,
          routing: { ...assignment.policy.routing, allow_fallbacks: true as never },
        },
      },
    ],
    ['a member more', { more: 1 } as never],
  ])('with %s is not of its schema', (_, overrides) => {
    expect(refusal(overrides)).toBe('schema_invalid');
  });

  it('changed in any field, with one more or one less, is refused', () => {
    const codes = [...changedLeaves(assignment), ...changedShapes(assignment)].map(({ document }) =>
      codeOf(() => verifyAssignment(parseAssignment(encodeCanonical(document)), keys.root)),
    );
    expect(codes.length).toBeGreaterThan(40);
    expect(new Set(codes)).toEqual(
      new Set([
        'assignment_challenge_mismatch',
        'assignment_inconsistent',
        'assignment_signature_invalid',
        'schema_invalid',
        'signer_signature_invalid',
      ]),
    );
  });

  it('of another root, another challenge or another time of the signer is refused', () => {
    expect(codeOf(() => verifyAssignment(assignment, reviewKeys().root))).toBe('signer_signature_invalid');
    const elsewhere = { ...keys.root, challengeId: 'other' };
    expect(codeOf(() => verifyAssignment(assignment, elsewhere))).toBe('assignment_challenge_mismatch');
    const late = assignment.signer.not_after_ms + 1;
    const later = signedAssignment(platform, keys, { issued_at_ms: late, expires_at_ms: late + 1000 });
    expect(codeOf(() => verifyAssignment(later, keys.root))).toBe('signer_outside_window');
  });

  it('has a window', () => {
    expect(codeOf(() => verifyAssignmentWindow(assignment, assignment.expires_at_ms))).toBe(
      'assignment_expired',
    );
    expect(codeOf(() => verifyAssignmentWindow(assignment, NOW_MS - 300_001))).toBe(
      'assignment_not_yet_valid',
    );
    expect(codeOf(() => verifyAssignmentWindow(assignment, Number.NaN))).toBe('assignment_not_yet_valid');
    verifyAssignmentWindow(assignment, NOW_MS - 300_000);
  });
});

describe('a session token', () => {
  it('names its assignment, dots and all', () => {
    expect(parseSessionToken(`a.b.${'f'.repeat(64)}`)).toEqual({ assignmentId: 'a.b', mac: 'f'.repeat(64) });
    expect(reviewRoutes('a/b').report).toBe('/review/v1/assignments/a%2Fb/report');
  });
  it.each([
    '',
    'a',
    `.${'f'.repeat(64)}`,
    `a.${'F'.repeat(64)}`,
    `a b.${'f'.repeat(64)}`,
    `a.${'f'.repeat(63)}`,
  ])('%j is none', (token) => expect(codeOf(() => parseSessionToken(token))).toBe('review_token_malformed'));
});
