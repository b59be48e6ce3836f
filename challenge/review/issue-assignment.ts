import { randomBytes } from 'node:crypto';
import {
  type Assignment,
  parseAssignment,
  REVIEW_WINDOW_MS,
  signAssignment,
} from '../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { certifySigner, type SigningKeys } from '../signer.ts';
import type { NewAssignment, Session } from './ledger.ts';
import { reviewPaths } from './paths.ts';
import { sessionToken } from './session-token.ts';

/** What a challenge reviews by; each document by its digest. */
export interface ReviewTerms {
  rules: { snapshotSha256: string; revisionId: string };
  corpusSha256: string;
  policy: Assignment['policy'];
  reviewApp: Assignment['review_app'];
}

/** Keys and secrets that an assignment is issued under. */
export interface ReviewIssuer extends SigningKeys {
  tokenSecret: Buffer;
}

/** Where the challenge is reached. */
export interface ReviewEndpoint {
  /** `https://host:port`. */
  baseUrl: string;
  caPem: string;
}

/** What one try of a session is issued for. */
export interface AssignmentOrder {
  session: Session;
  attempt: number;
  zipSizeBytes: number;
  terms: ReviewTerms;
  endpoint: ReviewEndpoint;
  issuedAtMs: number;
}

/**
 * Certifies the signer and signs an assignment with a fresh id and nonce; it is read back as a guest would.
 * @throws schema_invalid, assignment_inconsistent, json_too_large.
 */
export function issueAssignment(order: AssignmentOrder, issuer: ReviewIssuer): NewAssignment {
  const { session, terms, endpoint, issuedAtMs } = order;
  const assignmentId = `review-${randomBytes(16).toString('hex')}`;
  const paths = reviewPaths(assignmentId);
  const token = sessionToken(issuer.tokenSecret, assignmentId);
  const assignment = signAssignment(
    {
      challenge_id: issuer.challengeId,
      signer: certifySigner(issuer, issuedAtMs),
      api_base_url: endpoint.baseUrl,
      server_ca_pem: endpoint.caPem,
      session_id: session.sessionId,
      assignment_id: assignmentId,
      attempt: order.attempt,
      submission_id: session.submissionId,
      artifact: {
        agent_hash: session.agentHash,
        zip_sha256: session.agentHash,
        zip_size_bytes: order.zipSizeBytes,
        fetch_path: paths.artifact,
      },
      rules: {
        snapshot_sha256: terms.rules.snapshotSha256,
        revision_id: terms.rules.revisionId,
        fetch_path: paths.rules,
      },
      policy: terms.policy,
      similarity: { corpus_sha256: terms.corpusSha256, fetch_path: paths.corpus },
      review_app: terms.reviewApp,
      review_nonce: randomBytes(32).toString('hex'),
      submission_received_at_ms: session.submissionReceivedAtMs,
      issued_at_ms: issuedAtMs,
      expires_at_ms: issuedAtMs + REVIEW_WINDOW_MS,
      session_token_sha256: sha256Hex(token),
    },
    issuer.signerKey,
  );
  const assignmentBytes = encodeCanonical(assignment);
  parseAssignment(assignmentBytes);
  return {
    assignmentId,
    assignmentBytes,
    tokenSha256: assignment.session_token_sha256,
    reviewNonce: assignment.review_nonce,
    expiresAtMs: assignment.expires_at_ms,
  };
}
