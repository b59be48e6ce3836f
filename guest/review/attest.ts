import type { AgentPackage } from '../agent/types.ts';
import { checkOwnEvidence } from '../attest/evidence.ts';
import { type Assignment, assignmentDigest } from '../wire/assignment.ts';
import { digest, sha256Hex } from '../wire/digest.ts';
import { DOMAIN } from '../wire/report-data.ts';
import { type ReviewCore, type ReviewSubmission, reviewDigest, reviewReportData } from '../wire/review.ts';
import { similarityLevel } from '../wire/review-decision.ts';
import type { ReviewHost } from './config.ts';
import type { Weighed } from './decide.ts';
import type { ReviewedAgainst } from './inputs.ts';
import type { PlannedRequest } from './request.ts';

/** Everything a review came to. */
export interface Reviewed {
  order: Assignment;
  agent: AgentPackage;
  inputs: ReviewedAgainst;
  planned: PlannedRequest;
  /** null: no model was asked. */
  reply: Buffer | null;
  weighed: Weighed;
  startedAtMs: number;
}

/** The signed statement of a review. @param finishedAtMs ms since the epoch. */
function reviewCore(reviewed: Reviewed, finishedAtMs: number): ReviewCore {
  const { order, agent, inputs, planned, weighed } = reviewed;
  const { policy, rules, similarity } = order;
  const findingsSha256 = sha256Hex(planned.findingsBytes);
  return {
    schema_version: 1,
    challenge_id: order.challenge_id,
    session_id: order.session_id,
    assignment_id: order.assignment_id,
    attempt: order.attempt,
    submission_id: order.submission_id,
    assignment_digest: assignmentDigest(order),
    artifact: {
      agent_hash: agent.agentHash,
      zip_sha256: sha256Hex(agent.zip),
      zip_size_bytes: agent.zip.length,
      files: agent.files.length,
      unpacked_bytes: agent.files.reduce((sum, { bytes }) => sum + bytes.length, 0),
    },
    rules: {
      snapshot_sha256: rules.snapshot_sha256,
      revision_id: rules.revision_id,
      files: inputs.rules.length,
    },
    policy: {
      model: policy.model,
      routing_sha256: digest(policy.routing),
      prompt_sha256: policy.prompt_sha256,
      tool_schema_sha256: policy.tool_schema_sha256,
      verifier_version: policy.verifier_version,
    },
    model: weighed.model,
    static_findings_sha256: findingsSha256,
    similarity: {
      corpus_sha256: similarity.corpus_sha256,
      level: similarityLevel(weighed.similarity.containment),
      ...weighed.similarity,
    },
    decision: {
      ...weighed.decision,
      evidence_digests: {
        planned_request_sha256: planned.sha256,
        response_sha256: weighed.model.response_sha256,
        findings_sha256: findingsSha256,
      },
    },
    review_nonce: order.review_nonce,
    issued_at_ms: order.issued_at_ms,
    submission_received_at_ms: order.submission_received_at_ms,
    started_at_ms: reviewed.startedAtMs,
    finished_at_ms: finishedAtMs,
  };
}

/**
 * Step 8: one fresh quote over the review, checked as the challenge will before it is used.
 * @throws guest_agent_*, and all that `checkOwnEvidence` throws.
 */
export async function attestReview(reviewed: Reviewed, host: ReviewHost): Promise<ReviewSubmission> {
  const { order, planned, reply, weighed } = reviewed;
  const core = reviewCore(reviewed, host.nowMs());
  const reportData = reviewReportData(core);
  const { measurement, key_provider: keyProvider, vm_shape: vmShape } = order.review_app;
  const raw = await host.connectAgent().getQuote(reportData);
  const attestation = checkOwnEvidence(raw, { measurement, keyProvider, vmShape, reportData });
  host.journal.write({ event: 'model', outcome: weighed.model.outcome });
  host.journal.write({ event: 'verdict', ...weighed.decision });
  return {
    schema_version: 1,
    report: {
      schema_version: 1,
      domain: DOMAIN.review,
      review_core: core,
      review_digest: reviewDigest(core),
      report_data_hex: reportData.toString('hex'),
      attestation,
    },
    evidence: {
      planned_request_b64: planned.bytes.toString('base64'),
      response_b64: reply === null ? null : reply.toString('base64'),
      findings_b64: planned.findingsBytes.toString('base64'),
    },
  };
}
