import { EvaluatorError } from '../../guest/errors.ts';
import type { Assignment } from '../../guest/wire/assignment.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { observeModel } from '../../guest/wire/model-observation.ts';
import type { ModelReading } from '../../guest/wire/model-reply.ts';
import { parseModelRequest, TOOL_SCHEMA_SHA256 } from '../../guest/wire/model-request.ts';
import {
  type ReviewCore,
  type ReviewEvidence,
  type ReviewReport,
  reviewDigest,
} from '../../guest/wire/review.ts';
import {
  type Decision,
  decide,
  type Findings,
  parseFindings,
  similarityLevel,
} from '../../guest/wire/review-decision.ts';
import type { Check } from '../verify/checklist.ts';
import { requireEqual } from '../verify/require-equal.ts';

/** The decision, made anew from the evidence: what is signed must be what follows from it. */
export const DECISION_CHECKS = [
  'model_request',
  'model_reply',
  'findings',
  'similarity',
  'decision',
] as const;

/** Bytes from base64 that has one spelling. */
function decoded(text: string, what: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') === text) return bytes;
  throw new EvaluatorError('schema_invalid', `evidence: ${what}: not canonical base64`);
}

/** The planned request is the pinned model's, with the assigned prompt, routing and tool. */
function verifyRequest(evidence: ReviewEvidence, core: ReviewCore, { policy }: Assignment): Buffer {
  const code = 'review_request_mismatch';
  const bytes = decoded(evidence.planned_request_b64, 'planned_request_b64');
  const sha256 = sha256Hex(bytes);
  requireEqual(code, 'evidence: planned request', sha256, core.model.request_sha256);
  const { planned_request_sha256: signed } = core.decision.evidence_digests;
  requireEqual(code, 'review: decision.evidence_digests.planned_request_sha256', signed, sha256);
  const { messages, model, provider } = parseModelRequest(bytes);
  requireEqual(code, 'model request: model', model, policy.model);
  requireEqual(code, 'model request: provider', provider, policy.routing);
  const prompt = sha256Hex(messages[0].content);
  requireEqual(code, 'model request: system message', prompt, policy.prompt_sha256);
  requireEqual(code, 'assignment: tool_schema_sha256', policy.tool_schema_sha256, TOOL_SCHEMA_SHA256);
  return bytes;
}

function verifyReply(request: Buffer, evidence: ReviewEvidence, core: ReviewCore): ModelReading {
  const code = 'review_reply_mismatch';
  const { response_b64: text } = evidence;
  const response = text === null ? null : decoded(text, 'response_b64');
  const { reading, observation } = observeModel({ request, response }, core.policy.model);
  requireEqual(code, 'review: model', core.model, observation);
  const { response_sha256: signed } = core.decision.evidence_digests;
  requireEqual(
    code,
    'review: decision.evidence_digests.response_sha256',
    signed,
    observation.response_sha256,
  );
  return reading;
}

function verifyFindings(evidence: ReviewEvidence, core: ReviewCore): Findings {
  const code = 'review_findings_mismatch';
  const bytes = decoded(evidence.findings_b64, 'findings_b64');
  const sha256 = sha256Hex(bytes);
  requireEqual(code, 'review: static_findings_sha256', core.static_findings_sha256, sha256);
  const { findings_sha256: signed } = core.decision.evidence_digests;
  requireEqual(code, 'review: decision.evidence_digests.findings_sha256', signed, sha256);
  return parseFindings(bytes);
}

function verifySimilarity({ similarity }: ReviewCore): void {
  const code = 'review_similarity_mismatch';
  const { level, containment, matched_agent_hash: matched } = similarity;
  requireEqual(code, 'review: similarity.level', level, similarityLevel(containment));
  if (containment !== null && containment.shared > containment.total) {
    throw new EvaluatorError(code, 'review: similarity.containment: more shared than there are');
  }
  if (level !== 'none' && matched === null) {
    throw new EvaluatorError(code, 'review: similarity.matched_agent_hash: missing');
  }
}

/** Makes the checks of DECISION_CHECKS within a longer list, after that of `review_digest`. */
export async function checkDecision(
  check: Check<'review_digest' | (typeof DECISION_CHECKS)[number]>,
  made: { report: ReviewReport; evidence: ReviewEvidence; assignment: Assignment },
): Promise<Decision> {
  const { evidence, assignment, report } = made;
  const { review_core: core, review_digest: claimed } = report;
  await check('review_digest', 'review_digest_mismatch', () =>
    requireEqual('review_digest_mismatch', 'report: review_digest', claimed, reviewDigest(core)),
  );
  const request = await check('model_request', 'review_request_mismatch', () =>
    verifyRequest(evidence, core, assignment),
  );
  const model = await check('model_reply', 'review_reply_mismatch', () =>
    verifyReply(request, evidence, core),
  );
  const findings = await check('findings', 'review_findings_mismatch', () => verifyFindings(evidence, core));
  await check('similarity', 'review_similarity_mismatch', () => verifySimilarity(core));
  return check('decision', 'review_decision_mismatch', () => {
    const decision = decide({ findings, similarity: core.similarity.containment, model });
    const { verdict, reason_codes } = core.decision;
    requireEqual('review_decision_mismatch', 'review: decision', { verdict, reason_codes }, decision);
    return decision;
  });
}
