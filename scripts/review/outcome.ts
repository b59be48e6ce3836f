import { setTimeout as sleep } from 'node:timers/promises';
import { EvaluatorError } from '../../guest/errors.ts';
import { askChallenge, SMALL_REPLY } from '../../guest/net/challenge-client.ts';
import type { Assignment } from '../../guest/wire/assignment.ts';
import { parseForeignJson } from '../../guest/wire/foreign-json.ts';
import { parseReviewSubmission } from '../../guest/wire/review.ts';
import { type Finding, parseFindings } from '../../guest/wire/review-decision.ts';

const JUDGED_WITHIN_MS = 60_000;
const POLL_MS = 100;
/** States from which the challenge goes on by itself. */
const UNJUDGED = new Set(['received', 'parked']);

/** The challenge's word on a session. */
export interface SessionState {
  state: string;
  reason_code: string | null;
}

/** Asks until the challenge has judged. @throws judgement_late. */
export async function awaitVerdict(assignment: Assignment, token: string): Promise<SessionState> {
  const path = `/review/v1/assignments/${encodeURIComponent(assignment.assignment_id)}/state`;
  for (let waited = 0; waited < JUDGED_WITHIN_MS; waited += POLL_MS) {
    const reply = await askChallenge({
      method: 'GET',
      url: assignment.api_base_url + path,
      token,
      caPem: assignment.server_ca_pem,
      body: null,
      maxReplyBytes: SMALL_REPLY,
    });
    const body = parseForeignJson(reply.body, { maxBytes: SMALL_REPLY, maxDepth: 4 }) as SessionState;
    if (!UNJUDGED.has(body.state)) return body;
    await sleep(POLL_MS);
  }
  throw new EvaluatorError(
    'judgement_late',
    'the challenge has the report but no verdict yet; see journal.jsonl in --out',
  );
}

/** The object that `review --json` prints. */
export interface ReviewSummary {
  verdict: 'allow' | 'reject' | 'escalate' | null;
  reason_codes: readonly string[];
  /** Why there is no verdict; null when there is one. */
  reason_code: string | null;
  agent_hash: string;
  findings: readonly Finding[];
  similarity: { level: string; matched_agent_hash: string | null } | null;
  /** `not_asked` when no model was. */
  model: { outcome: string; returned_model: string | null } | null;
  review_digest: string | null;
}

/** A session without a verdict that counts. */
export function withoutVerdict(agentHash: string, reasonCode: string): ReviewSummary {
  return {
    verdict: null,
    reason_codes: [],
    reason_code: reasonCode,
    agent_hash: agentHash,
    findings: [],
    similarity: null,
    model: null,
    review_digest: null,
  };
}

/** An accepted report, for people and programs. @throws json_*, schema_invalid. */
export function summarizeReview(reportBytes: Buffer): ReviewSummary {
  const { report, evidence } = parseReviewSubmission(reportBytes);
  const { review_core: core } = report;
  const { similarity, model, decision } = core;
  return {
    verdict: decision.verdict,
    reason_codes: decision.reason_codes,
    reason_code: null,
    agent_hash: core.artifact.agent_hash,
    findings: parseFindings(Buffer.from(evidence.findings_b64, 'base64')).findings,
    similarity: { level: similarity.level, matched_agent_hash: similarity.matched_agent_hash },
    model: { outcome: model.outcome, returned_model: model.returned_model },
    review_digest: report.review_digest,
  };
}
