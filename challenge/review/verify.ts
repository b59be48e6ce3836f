import type { Code } from '../../guest/errors.ts';
import { type Assignment, parseAssignment, verifyAssignment } from '../../guest/wire/assignment.ts';
import { decodeCanonical } from '../../guest/wire/canonical.ts';
import type { PlanRoot } from '../../guest/wire/plan-signature.ts';
import {
  MAX_REVIEW_REPORT_BYTES,
  type ReviewReport,
  reviewReportData,
  reviewSubmissionSchema,
} from '../../guest/wire/review.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import { type CheckReport, runChecklist } from '../verify/checklist.ts';
import {
  checkEvidence,
  EVIDENCE_CHECKS,
  type TrustPolicy,
  type VerifiedEvidence,
} from '../verify/evidence.ts';
import { requireEqual } from '../verify/require-equal.ts';
import {
  verifyAssignmentDigest,
  verifyCorpus,
  verifyIds,
  verifyModelCall,
  verifyPolicy,
  verifyReviewed,
  verifyRules,
  verifyTimes,
} from './binding.ts';
import { checkDecision, DECISION_CHECKS } from './decision.ts';
import type { Verdict } from './ledger.ts';

/** Everything a report is checked for, in the order of spec/09; `docs/review.md` explains each. */
export const REVIEW_CHECKS = [
  'report_canonical',
  'report_schema',
  'assignment_document',
  'assignment_signatures',
  'agent',
  'report_ids',
  'assignment_digest',
  'artifact',
  'rules',
  'policy',
  'corpus',
  'model_call',
  'times',
  ...EVIDENCE_CHECKS,
  'review_digest',
  ...DECISION_CHECKS,
  'attested_measurement',
  'attested_report_data',
  'vm_shape',
] as const;

/** A review's bytes, and what the challenge noted of them itself. */
export interface ReviewBytes {
  assignmentBytes: Buffer;
  reportBytes: Buffer;
  /** SHA-256 of the model request that was announced; null: none was. */
  announcedRequest: string | null;
  /** Milliseconds since the epoch, by the challenge's clock. */
  receivedAtMs: number;
}

export interface ReviewInput extends TrustPolicy, ReviewBytes {
  /** The root that assignments are signed under. */
  root: PlanRoot;
  /** Of the agent that the review is wanted for. */
  agentHash: string;
}

/** What a report says once the whole list has passed. */
export interface VerifiedReview {
  verdict: Verdict;
  reasonCodes: readonly string[];
  reviewDigest: string;
  finishedAtMs: number;
}

export interface ReviewVerdict {
  checks: CheckReport[];
  /** Null unless every check of the list passed. */
  review: VerifiedReview | null;
}

function verifyAgent(assignment: Assignment, agentHash: string): void {
  const { agent_hash: assigned } = assignment.artifact;
  requireEqual('review_agent_mismatch', 'assignment: artifact.agent_hash', assigned, agentHash);
}

function verifyAttested(
  { attestation }: ReviewReport,
  assignment: Assignment,
  found: VerifiedEvidence,
): void {
  const code: Code = 'attested_measurement_mismatch';
  const { review_app: app } = assignment;
  requireEqual(code, 'attestation: measurement', attestation.measurement, found.measurement);
  requireEqual(code, 'assignment: review_app.measurement', app.measurement, found.measurement);
  requireEqual(code, 'assignment: review_app.key_provider', app.key_provider, found.keyProvider);
}

function verifyReportDataFields(
  { attestation, report_data_hex: field }: ReviewReport,
  expected: Buffer,
): void {
  const code: Code = 'attested_report_data_mismatch';
  requireEqual(code, 'report: report_data_hex', field, expected.toString('hex'));
  requireEqual(code, 'attestation: report_data', attestation.report_data, expected.toString('hex'));
}

/**
 * Checks a report against the assignment it answers, under the allowlist of the review image, and decides
 * anew from its evidence. Whether it is fresh is for the one who asks.
 * @throws nothing about the documents: every refusal is a failed check with its code.
 */
export async function verifyReview(input: ReviewInput): Promise<ReviewVerdict> {
  let review: VerifiedReview | null = null;
  const checks = await runChecklist(REVIEW_CHECKS, async (check) => {
    const body = await check('report_canonical', 'json_malformed', () =>
      decodeCanonical(input.reportBytes, MAX_REVIEW_REPORT_BYTES),
    );
    const { report, evidence } = await check('report_schema', 'schema_invalid', () =>
      parseSchema(reviewSubmissionSchema, body, 'review report'),
    );
    const { review_core: core, attestation } = report;
    const assignment = await check('assignment_document', 'assignment_inconsistent', () =>
      parseAssignment(input.assignmentBytes),
    );
    await check('assignment_signatures', 'assignment_signature_invalid', () =>
      verifyAssignment(assignment, input.root),
    );
    await check('agent', 'review_agent_mismatch', () => verifyAgent(assignment, input.agentHash));
    await check('report_ids', 'review_ids_mismatch', () => verifyIds(core, assignment));
    await check('assignment_digest', 'review_assignment_mismatch', () =>
      verifyAssignmentDigest(core, assignment),
    );
    await check('artifact', 'review_artifact_mismatch', () => verifyReviewed(core, assignment));
    await check('rules', 'review_rules_mismatch', () => verifyRules(core, assignment));
    await check('policy', 'review_policy_mismatch', () => verifyPolicy(core, assignment));
    await check('corpus', 'review_corpus_mismatch', () => verifyCorpus(core, assignment));
    await check('model_call', 'review_call_mismatch', () => verifyModelCall(core, input.announcedRequest));
    await check('times', 'review_times_invalid', () => verifyTimes(core, assignment, input.receivedAtMs));
    const reportData = reviewReportData(core);
    const found = await checkEvidence(check, {
      ...input,
      quoteBytes: Buffer.from(attestation.tdx_quote, 'hex'),
      eventLog: attestation.event_log,
      reportData,
    });
    const decision = await checkDecision(check, { report, evidence, assignment });
    await check('attested_measurement', 'attested_measurement_mismatch', () =>
      verifyAttested(report, assignment, found),
    );
    await check('attested_report_data', 'attested_report_data_mismatch', () =>
      verifyReportDataFields(report, reportData),
    );
    await check('vm_shape', 'vm_shape_mismatch', () =>
      requireEqual(
        'vm_shape_mismatch',
        'attestation: vm_config',
        attestation.vm_config,
        assignment.review_app.vm_shape,
      ),
    );
    review = {
      verdict: decision.verdict,
      reasonCodes: decision.reason_codes,
      reviewDigest: report.review_digest,
      finishedAtMs: core.finished_at_ms,
    };
  });
  const verified = checks.every(({ status }) => status === 'ok');
  return { checks, review: verified ? review : null };
}
