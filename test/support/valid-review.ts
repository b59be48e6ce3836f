import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { ReviewInput } from '../../challenge/review/verify.ts';
import { certifySigner } from '../../challenge/signer.ts';
import { parseEventLog } from '../../guest/attest/event-log.ts';
import {
  type Assignment,
  assignmentDigest,
  REVIEW_WINDOW_MS,
  signAssignment,
} from '../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { digest, sha256Hex } from '../../guest/wire/digest.ts';
import { observeModel } from '../../guest/wire/model-observation.ts';
import {
  encodeModelRequest,
  routingTo,
  TOOL_SCHEMA_SHA256,
  VERDICT_TOOL,
  VERDICT_TOOL_NAME,
} from '../../guest/wire/model-request.ts';
import { ed25519PublicHex, type PlanRoot } from '../../guest/wire/plan-signature.ts';
import { DOMAIN } from '../../guest/wire/report-data.ts';
import {
  type ReviewCore,
  type ReviewSubmission,
  reviewDigest,
  reviewReportData,
} from '../../guest/wire/review.ts';
import { decide, type Finding, similarityLevel } from '../../guest/wire/review-decision.ts';
import type { Platform } from '../../simulator/platform.ts';
import { allowlistOf, NOW_MS, testPlatform } from './valid-result.ts';

export const AGENT_HASH = sha256Hex('agent');
const MODEL = 'maker/model-1';
const PROMPT = 'You review agents.';

/** A simulated machine that runs the review image: another compose than the eval image's. */
export function reviewPlatform(options: Parameters<typeof testPlatform>[0] = {}): Promise<Platform> {
  return testPlatform({
    appCompose: Buffer.from('{"name":"reviewer","runner":"docker-compose"}'),
    ...options,
  });
}

export interface ReviewKeys {
  challengeId: string;
  rootKey: KeyObject;
  signerKey: KeyObject;
  tokenSecret: Buffer;
  root: PlanRoot;
}

export function reviewKeys(): ReviewKeys {
  const rootKey = generateKeyPairSync('ed25519').privateKey;
  const signerKey = generateKeyPairSync('ed25519').privateKey;
  const challengeId = 'test-challenge';
  const root = { publicKey: ed25519PublicHex(rootKey), challengeId };
  return { challengeId, rootKey, signerKey, tokenSecret: Buffer.alloc(32, 9), root };
}

/** What an assignment of these tests is reviewed by. */
export const POLICY: Assignment['policy'] = {
  model: MODEL,
  routing: routingTo('provider-a'),
  prompt_sha256: sha256Hex(PROMPT),
  tool_schema_sha256: TOOL_SCHEMA_SHA256,
  verifier_version: '1',
};

export function reviewAppOf(platform: Platform): Assignment['review_app'] {
  return {
    image_ref: `registry.invalid/reviewer@sha256:${sha256Hex('review image')}`,
    compose_hash: platform.measurement.compose_hash,
    measurement: platform.measurement,
    key_provider: platform.keyProvider,
    vm_shape: platform.vmShape,
  };
}

export function signedAssignment(
  platform: Platform,
  keys: ReviewKeys,
  overrides: Partial<Assignment> = {},
): Assignment {
  const path = '/review/v1/assignments/review-1';
  const { assignment_signature: _, ...unsigned } = {
    challenge_id: keys.challengeId,
    signer: certifySigner(keys, NOW_MS),
    api_base_url: 'https://127.0.0.1:1',
    server_ca_pem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
    session_id: 'session-1',
    assignment_id: 'review-1',
    attempt: 1,
    submission_id: 'submission-1',
    artifact: {
      agent_hash: AGENT_HASH,
      zip_sha256: AGENT_HASH,
      zip_size_bytes: 100,
      fetch_path: `${path}/artifact`,
    },
    rules: { snapshot_sha256: sha256Hex('rules'), revision_id: 'rules-1', fetch_path: `${path}/rules` },
    policy: POLICY,
    similarity: { corpus_sha256: sha256Hex('corpus'), fetch_path: `${path}/corpus` },
    review_app: reviewAppOf(platform),
    review_nonce: 'review-nonce-1',
    submission_received_at_ms: NOW_MS - 1000,
    issued_at_ms: NOW_MS,
    expires_at_ms: NOW_MS + REVIEW_WINDOW_MS,
    session_token_sha256: sha256Hex('session token'),
    assignment_signature: '',
    ...overrides,
  };
  return signAssignment(unsigned, keys.signerKey);
}

/** A reply of the model with this verdict. */
export function replyWith(verdict: 'allow' | 'reject' | 'escalate', reasonCodes: string[] = []): Buffer {
  const call = {
    type: 'function',
    function: {
      name: VERDICT_TOOL_NAME,
      arguments: JSON.stringify({ verdict, reason_codes: reasonCodes, evidence_paths: [] }),
    },
  };
  const choices = [{ message: { role: 'assistant', content: null, tool_calls: [call] } }];
  return Buffer.from(JSON.stringify({ model: MODEL, provider: 'provider-a', choices }));
}

/** What one review found and heard. */
export interface ReviewContent {
  findings: Finding[];
  /** The user message of the model request. */
  userText: string;
  /** null: no model was asked. */
  response: Buffer | null;
  containment: { shared: number; total: number } | null;
  /** Changes to the core, before it is signed. */
  core: Partial<ReviewCore>;
  startedAtMs: number;
  finishedAtMs: number;
}

/** The posted report of an honest guest on `platform`. */
export function reviewFor(
  platform: Platform,
  assignment: Assignment,
  content: Partial<ReviewContent> = {},
): ReviewSubmission {
  const { response = replyWith('allow'), containment = null } = content;
  const findings = { schema_version: 1 as const, findings: content.findings ?? [] };
  const { policy, artifact } = assignment;
  const request = encodeModelRequest({
    messages: [
      { role: 'system', content: PROMPT },
      { role: 'user', content: content.userText ?? 'the agent' },
    ],
    model: policy.model,
    provider: policy.routing,
    stream: false,
    tool_choice: 'auto',
    tools: [VERDICT_TOOL],
  });
  const { reading, observation } = observeModel({ request, response }, policy.model);
  const decision = decide({ findings, similarity: containment, model: reading });
  const core: ReviewCore = {
    schema_version: 1,
    challenge_id: assignment.challenge_id,
    session_id: assignment.session_id,
    assignment_id: assignment.assignment_id,
    attempt: assignment.attempt,
    submission_id: assignment.submission_id,
    assignment_digest: assignmentDigest(assignment),
    artifact: {
      agent_hash: artifact.agent_hash,
      zip_sha256: artifact.zip_sha256,
      zip_size_bytes: artifact.zip_size_bytes,
      files: 2,
      unpacked_bytes: 200,
    },
    rules: {
      snapshot_sha256: assignment.rules.snapshot_sha256,
      revision_id: assignment.rules.revision_id,
      files: 3,
    },
    policy: {
      model: policy.model,
      routing_sha256: digest(policy.routing),
      prompt_sha256: policy.prompt_sha256,
      tool_schema_sha256: policy.tool_schema_sha256,
      verifier_version: policy.verifier_version,
    },
    model: observation,
    static_findings_sha256: digest(findings),
    similarity: {
      corpus_sha256: assignment.similarity.corpus_sha256,
      level: similarityLevel(containment),
      containment,
      matched_agent_hash: containment === null ? null : sha256Hex('earlier agent'),
    },
    decision: {
      ...decision,
      evidence_digests: {
        planned_request_sha256: sha256Hex(request),
        response_sha256: observation.response_sha256,
        findings_sha256: digest(findings),
      },
    },
    review_nonce: assignment.review_nonce,
    issued_at_ms: assignment.issued_at_ms,
    submission_received_at_ms: assignment.submission_received_at_ms,
    started_at_ms: content.startedAtMs ?? assignment.issued_at_ms + 10,
    finished_at_ms: content.finishedAtMs ?? assignment.issued_at_ms + 20,
    ...content.core,
  };
  return {
    schema_version: 1,
    report: attestedReport(platform, core),
    evidence: {
      planned_request_b64: request.toString('base64'),
      response_b64: response === null ? null : response.toString('base64'),
      findings_b64: encodeCanonical(findings).toString('base64'),
    },
  };
}

/** A report over any core, truly quoted by `platform`. */
export function attestedReport(platform: Platform, core: ReviewCore): ReviewSubmission['report'] {
  const reportData = reviewReportData(core);
  return {
    schema_version: 1,
    domain: DOMAIN.review,
    review_core: core,
    review_digest: reviewDigest(core),
    report_data_hex: reportData.toString('hex'),
    attestation: {
      tdx_quote: platform.quote(reportData, { version: 4 }).toString('hex'),
      event_log: parseEventLog(platform.eventLog),
      report_data: reportData.toString('hex'),
      measurement: platform.measurement,
      vm_config: platform.vmShape,
    },
  };
}

export interface ValidReview {
  platform: Platform;
  keys: ReviewKeys;
  assignment: Assignment;
  submission: ReviewSubmission;
  /** What `verifyReview` takes; verified as it is. */
  input: ReviewInput;
}

/** A review that allows, its assignment and everything that verifies it, in memory. */
export async function validReview(content: Partial<ReviewContent> = {}): Promise<ValidReview> {
  const platform = await reviewPlatform();
  const keys = reviewKeys();
  const assignment = signedAssignment(platform, keys);
  const submission = reviewFor(platform, assignment, content);
  const { model } = submission.report.review_core;
  const input: ReviewInput = {
    reportBytes: encodeCanonical(submission),
    assignmentBytes: encodeCanonical(assignment),
    root: keys.root,
    agentHash: AGENT_HASH,
    announcedRequest: model.outcome === 'not_asked' ? null : model.request_sha256,
    receivedAtMs: NOW_MS + 30,
    allowlist: allowlistOf(platform),
    rootDer: platform.rootDer,
    collateral: platform.collateral,
    acceptedTcb: new Set(['UpToDate']),
    nowMs: NOW_MS + 30,
  };
  return { platform, keys, assignment, submission, input };
}
