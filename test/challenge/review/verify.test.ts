import { beforeAll, describe, expect, it } from 'vitest';
import { REVIEW_CHECKS, type ReviewInput, verifyReview } from '../../../challenge/review/verify.ts';
import { failedCheck } from '../../../challenge/verify/checklist.ts';
import { verifyResult } from '../../../challenge/verify/result.ts';
import type { Assignment } from '../../../guest/wire/assignment.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import type { ReviewCore, ReviewSubmission } from '../../../guest/wire/review.ts';
import { changedLeaves, changedShapes } from '../../support/leaves.ts';
import { NOW_MS, resultFor, signedPlan, validResult } from '../../support/valid-result.ts';
import {
  attestedReport,
  replyWith,
  reviewFor,
  reviewKeys,
  reviewPlatform,
  signedAssignment,
  type ValidReview,
  validReview,
} from '../../support/valid-review.ts';

let valid: ValidReview;
beforeAll(async () => {
  valid = await validReview();
});

/** `check: code`, or the verdict. */
async function outcome(overrides: Partial<ReviewInput>): Promise<string> {
  const { review, checks } = await verifyReview({ ...valid.input, ...overrides });
  const failed = failedCheck(checks);
  expect(review === null).toBe(failed !== undefined);
  return failed ? `${failed.name}: ${failed.code}` : (review?.verdict ?? 'none');
}
const bytesOf = (document: unknown) => encodeCanonical(document);
/** As a broken guest would sign it: the core changed, truly quoted. */
const quoted = (edit: (core: ReviewCore) => void): Buffer => {
  const core = structuredClone(valid.submission.report.review_core);
  edit(core);
  return bytesOf({ ...valid.submission, report: attestedReport(valid.platform, core) });
};
const withEvidence = (evidence: Partial<ReviewSubmission['evidence']>): Buffer =>
  bytesOf({ ...valid.submission, evidence: { ...valid.submission.evidence, ...evidence } });

/** What a changed leaf of a document answers to: the first prefix that fits. */
type Expected = readonly (readonly [prefix: string, outcome: string | RegExp])[];
function expectLeaf(path: string, found: string, expected: Expected): void {
  const [, wanted] = expected.find(([prefix]) => path.startsWith(prefix)) ?? [];
  expect(wanted, `${path} (${found}) has no row in the matrix`).toBeDefined();
  if (typeof wanted === 'string') expect(found, path).toBe(wanted);
  else expect(found, path).toMatch(wanted ?? /never/);
}

describe('a report', () => {
  it('verifies, every check made', async () => {
    const { checks, review } = await verifyReview(valid.input);
    expect(checks.map(({ name, status }) => `${name} ${status}`)).toEqual(
      REVIEW_CHECKS.map((name) => `${name} ok`),
    );
    expect(review).toEqual({
      verdict: 'allow',
      reasonCodes: ['policy_passed'],
      reviewDigest: valid.submission.report.review_digest,
      finishedAtMs: NOW_MS + 20,
    });
  });

  it('with any single leaf changed does not, each for its own reason', async () => {
    const core = '.report.review_core';
    const at = '.report.attestation';
    const unsigned = 'report_data: report_data_mismatch';
    const expected: Expected = [
      ['.schema_version', 'report_schema: schema_invalid'],
      ['.report.schema_version', 'report_schema: schema_invalid'],
      ['.report.domain', 'report_schema: schema_invalid'],
      [`${core}.schema_version`, 'report_schema: schema_invalid'],
      ...['challenge_id', 'session_id', 'assignment_id', 'attempt', 'submission_id', 'review_nonce'].map(
        (field) => [`${core}.${field}`, 'report_ids: review_ids_mismatch'] as const,
      ),
      [`${core}.assignment_digest`, 'assignment_digest: review_assignment_mismatch'],
      [`${core}.artifact.files`, unsigned],
      [`${core}.artifact.unpacked_bytes`, unsigned],
      [`${core}.artifact`, 'artifact: review_artifact_mismatch'],
      [`${core}.rules.files`, unsigned],
      [`${core}.rules`, 'rules: review_rules_mismatch'],
      [`${core}.policy`, 'policy: review_policy_mismatch'],
      [`${core}.model.request_sha256`, 'model_call: review_call_mismatch'],
      [`${core}.model.outcome`, 'report_schema: schema_invalid'],
      [`${core}.model.status`, 'report_schema: schema_invalid'],
      [`${core}.model`, unsigned],
      [`${core}.similarity.corpus_sha256`, 'corpus: review_corpus_mismatch'],
      [`${core}.similarity.level`, 'report_schema: schema_invalid'],
      [`${core}.similarity.containment`, 'report_schema: schema_invalid'],
      [`${core}.similarity.matched_agent_hash`, 'report_schema: schema_invalid'],
      [`${core}.decision.verdict`, 'report_schema: schema_invalid'],
      [`${core}.decision.reason_codes`, unsigned],
      [`${core}.decision`, unsigned],
      [`${core}.static_findings_sha256`, unsigned],
      [`${core}.issued_at_ms`, 'times: review_times_invalid'],
      [`${core}.submission_received_at_ms`, 'times: review_times_invalid'],
      [`${core}.started_at_ms`, unsigned],
      [`${core}.finished_at_ms`, unsigned],
      ['.report.review_digest', 'review_digest: review_digest_mismatch'],
      ['.report.report_data_hex', 'attested_report_data: attested_report_data_mismatch'],
      [`${at}.report_data`, 'attested_report_data: attested_report_data_mismatch'],
      [`${at}.measurement`, 'attested_measurement: attested_measurement_mismatch'],
      [`${at}.vm_config`, 'vm_shape: vm_shape_mismatch'],
      [`${at}.event_log`, /^(registers: event_\w+|report_schema: schema_invalid)$/],
      [`${at}.tdx_quote`, /^quote_\w+: \w+$/],
      ['.evidence.planned_request_b64', 'model_request: review_request_mismatch'],
      ['.evidence.response_b64', 'model_reply: review_reply_mismatch'],
      ['.evidence.findings_b64', 'findings: review_findings_mismatch'],
    ];
    for (const { path, document } of changedLeaves(valid.submission)) {
      expectLeaf(path, await outcome({ reportBytes: bytesOf(document) }), expected);
    }
  });

  it('with a member missing, added, dropped, repeated does not', async () => {
    for (const { path, document } of changedShapes(valid.submission)) {
      expect(await outcome({ reportBytes: bytesOf(document) }), path).toMatch(/^\w+: \w+$/);
    }
  });

  it.each([
    ['a trailing newline', (text: string) => `${text}\n`, 'json_not_canonical'],
    ['a duplicate key', (text: string) => text.replace('{"ev', '{"evidence":1,"ev'), 'json_not_canonical'],
    [
      '2^53+1',
      (text: string) => text.replace('"attempt":1', '"attempt":9007199254740993'),
      'json_not_canonical',
    ],
    ['nothing', () => '', 'json_malformed'],
  ])('with %s is not canonical', async (_name, edit, code) => {
    const reportBytes = Buffer.from(edit(valid.input.reportBytes.toString()));
    expect(await outcome({ reportBytes })).toBe(`report_canonical: ${code}`);
  });
});

describe('an assignment', () => {
  it('with any single leaf changed is refused, each for its own reason', async () => {
    const inconsistent = 'assignment_document: assignment_inconsistent';
    const expected: Expected = [
      ['.challenge_id', 'assignment_signatures: assignment_challenge_mismatch'],
      ['.signer.challenge_id', 'assignment_signatures: assignment_challenge_mismatch'],
      ['.signer', 'assignment_signatures: signer_signature_invalid'],
      ['.server_ca_pem', 'assignment_document: schema_invalid'],
      ['.artifact.agent_hash', inconsistent],
      ['.artifact.zip_sha256', inconsistent],
      ['.policy.routing.order', inconsistent],
      ['.policy.routing.only', inconsistent],
      ['.policy.routing', 'assignment_document: schema_invalid'],
      ['.review_app.compose_hash', inconsistent],
      ['.review_app.measurement.compose_hash', inconsistent],
      ['.expires_at_ms', inconsistent],
      ['', 'assignment_signatures: assignment_signature_invalid'],
    ];
    for (const { path, document } of changedLeaves(valid.assignment)) {
      expectLeaf(path, await outcome({ assignmentBytes: bytesOf(document) }), expected);
    }
  });

  it('of another signer, root or challenge is refused', async () => {
    const other = signedAssignment(valid.platform, reviewKeys());
    expect(await outcome({ assignmentBytes: bytesOf(other) })).toBe(
      'assignment_signatures: signer_signature_invalid',
    );
    const foreign = { ...valid.keys.root, challengeId: 'another' };
    expect(await outcome({ root: foreign })).toBe('assignment_signatures: assignment_challenge_mismatch');
  });

  it.each<[string, Partial<Assignment>, string]>([
    ['session', { session_id: 'session-2' }, 'report_ids: review_ids_mismatch'],
    ['assignment', { assignment_id: 'review-2' }, 'report_ids: review_ids_mismatch'],
    ['try', { attempt: 2, review_nonce: 'n2' }, 'report_ids: review_ids_mismatch'],
    ['nonce', { review_nonce: 'review-nonce-2' }, 'report_ids: review_ids_mismatch'],
    ['address', { api_base_url: 'https://127.0.0.1:2' }, 'assignment_digest: review_assignment_mismatch'],
    ['token', { session_token_sha256: sha256Hex('x') }, 'assignment_digest: review_assignment_mismatch'],
  ])('of another %s is not what the report answers', async (_name, overrides, expected) => {
    const other = signedAssignment(valid.platform, valid.keys, overrides);
    expect(await outcome({ assignmentBytes: bytesOf(other) })).toBe(expected);
  });

  it('of another agent than the one wanted is refused', async () => {
    expect(await outcome({ agentHash: sha256Hex('another agent') })).toBe('agent: review_agent_mismatch');
  });
});

describe('a core that a broken guest signed', () => {
  it('and truly quoted, with any single leaf changed, is still refused for its own reason', async () => {
    const expected: Expected = [
      // What a measured guest alone can know, and no verdict follows from.
      ['.artifact.files', 'allow'],
      ['.artifact.unpacked_bytes', 'allow'],
      ['.rules.files', 'allow'],
      ['.started_at_ms', 'allow'],
      ['.finished_at_ms', 'allow'],
      ['.schema_version', 'report_schema: schema_invalid'],
      ...['challenge_id', 'session_id', 'assignment_id', 'attempt', 'submission_id', 'review_nonce'].map(
        (field) => [`.${field}`, 'report_ids: review_ids_mismatch'] as const,
      ),
      ['.assignment_digest', 'assignment_digest: review_assignment_mismatch'],
      ['.artifact', 'artifact: review_artifact_mismatch'],
      ['.rules', 'rules: review_rules_mismatch'],
      ['.policy', 'policy: review_policy_mismatch'],
      ['.model.outcome', 'report_schema: schema_invalid'],
      ['.model.status', 'report_schema: schema_invalid'],
      ['.model.request_sha256', 'model_call: review_call_mismatch'],
      ['.model', 'model_reply: review_reply_mismatch'],
      ['.static_findings_sha256', 'findings: review_findings_mismatch'],
      ['.similarity.corpus_sha256', 'corpus: review_corpus_mismatch'],
      ['.similarity.level', 'report_schema: schema_invalid'],
      ['.similarity.containment.shared', 'similarity: review_similarity_mismatch'],
      ['.similarity.containment.total', 'allow'],
      ['.similarity.matched_agent_hash', 'allow'],
      ['.decision.verdict', 'report_schema: schema_invalid'],
      ['.decision.reason_codes', 'decision: review_decision_mismatch'],
      ['.decision.evidence_digests.planned_request_sha256', 'model_request: review_request_mismatch'],
      ['.decision.evidence_digests.response_sha256', 'model_reply: review_reply_mismatch'],
      ['.decision.evidence_digests.findings_sha256', 'findings: review_findings_mismatch'],
      ['.issued_at_ms', 'times: review_times_invalid'],
      ['.submission_received_at_ms', 'times: review_times_invalid'],
    ];
    const { assignment, platform } = valid;
    // As close below the next level as it gets, so that one more shared counts.
    const { report, evidence } = reviewFor(platform, assignment, { containment: { shared: 59, total: 100 } });
    for (const { path, document } of changedLeaves(report.review_core)) {
      const changed = attestedReport(platform, document as ReviewCore);
      expectLeaf(
        path,
        await outcome({ reportBytes: bytesOf({ report: changed, evidence, schema_version: 1 }) }),
        expected,
      );
    }
  });

  it.each<[string, (core: ReviewCore) => void, string]>([
    [
      'rules',
      (core) => Object.assign(core.rules, { revision_id: 'rules-2' }),
      'rules: review_rules_mismatch',
    ],
    [
      'a milder verdict',
      (core) => Object.assign(core.decision, { reason_codes: ['x'] }),
      'decision: review_decision_mismatch',
    ],
    [
      'other findings',
      (core) => Object.assign(core, { static_findings_sha256: sha256Hex('') }),
      'findings: review_findings_mismatch',
    ],
    [
      'other digests of findings',
      ({ decision }) => Object.assign(decision.evidence_digests, { findings_sha256: sha256Hex('') }),
      'findings: review_findings_mismatch',
    ],
    [
      'other digests of the request',
      ({ decision }) => Object.assign(decision.evidence_digests, { planned_request_sha256: sha256Hex('') }),
      'model_request: review_request_mismatch',
    ],
    [
      'other digests of the reply',
      ({ decision }) => Object.assign(decision.evidence_digests, { response_sha256: null }),
      'model_reply: review_reply_mismatch',
    ],
    [
      'another model',
      ({ model }) => Object.assign(model, { returned_model: 'other' }),
      'model_reply: review_reply_mismatch',
    ],
    [
      'a level too low',
      ({ similarity }) => Object.assign(similarity, { containment: { shared: 9, total: 10 } }),
      'similarity: review_similarity_mismatch',
    ],
    [
      'a level without a match',
      ({ similarity }) => Object.assign(similarity, { containment: { shared: 9, total: 10 }, level: 'high' }),
      'similarity: review_similarity_mismatch',
    ],
    [
      'more shared than there is',
      ({ similarity }) =>
        Object.assign(similarity, {
          containment: { shared: 11, total: 10 },
          level: 'high',
          matched_agent_hash: sha256Hex('x'),
        }),
      'similarity: review_similarity_mismatch',
    ],
    [
      'a start before its issue',
      (core) => Object.assign(core, { started_at_ms: NOW_MS - 1 }),
      'times: review_times_invalid',
    ],
    [
      'an end before its start',
      (core) => Object.assign(core, { finished_at_ms: NOW_MS + 9 }),
      'times: review_times_invalid',
    ],
    [
      'an end after its receipt',
      (core) => Object.assign(core, { finished_at_ms: NOW_MS + 31 }),
      'times: review_times_invalid',
    ],
  ])('with %s is refused', async (_name, edit, expected) => {
    expect(await outcome({ reportBytes: quoted(edit) })).toBe(expected);
  });

  it('cannot say allow over evidence that says otherwise', async () => {
    const finding = {
      code: 'reads_hidden_tests',
      path: 'agent.py',
      line: 3,
      excerpt_sha256: sha256Hex('x'),
    } as const;
    const honest = reviewFor(valid.platform, valid.assignment, { findings: [finding] });
    const reject = { announcedRequest: honest.report.review_core.model.request_sha256 };
    expect(await outcome({ ...reject, reportBytes: bytesOf(honest) })).toBe('reject');
    const core = structuredClone(honest.report.review_core);
    Object.assign(core.decision, { verdict: 'allow', reason_codes: ['policy_passed'] });
    const forged = { ...honest, report: attestedReport(valid.platform, core) };
    expect(await outcome({ ...reject, reportBytes: bytesOf(forged) })).toBe(
      'decision: review_decision_mismatch',
    );
  });

  it('asked with another prompt, model or routing than was assigned is refused', async () => {
    for (const policy of [
      { prompt_sha256: sha256Hex('another prompt') },
      { model: 'maker/model-2' },
      { tool_schema_sha256: sha256Hex('another tool') },
    ]) {
      const assignment = signedAssignment(valid.platform, valid.keys, {
        policy: { ...valid.assignment.policy, ...policy },
      });
      const submission = reviewFor(valid.platform, assignment);
      // The request that was really made is the one of the first assignment.
      const { planned_request_b64 } = valid.submission.evidence;
      const request = Buffer.from(planned_request_b64, 'base64');
      const core = structuredClone(submission.report.review_core);
      core.model = { ...valid.submission.report.review_core.model };
      core.decision.evidence_digests.planned_request_sha256 = sha256Hex(request);
      const reportBytes = bytesOf({
        ...submission,
        report: attestedReport(valid.platform, core),
        evidence: { ...submission.evidence, planned_request_b64 },
      });
      expect(await outcome({ reportBytes, assignmentBytes: bytesOf(assignment) })).toBe(
        'model_request: review_request_mismatch',
      );
    }
  });
});

describe('the model call', () => {
  it('is the one that was announced, or none was', async () => {
    expect(await outcome({ announcedRequest: null })).toBe('model_call: review_call_mismatch');
    const other = sha256Hex('another request');
    expect(await outcome({ announcedRequest: other })).toBe('model_call: review_call_mismatch');
    const silent = await validReview({ response: null });
    const { review } = await verifyReview(silent.input);
    expect(review).toMatchObject({ verdict: 'escalate', reasonCodes: ['model_output_malformed'] });
    const hidden = await verifyReview({ ...silent.input, announcedRequest: other });
    expect(failedCheck(hidden.checks)?.code).toBe('review_call_mismatch');
  });

  it('decides as its bytes say', async () => {
    for (const [response, expected] of [
      [replyWith('reject', ['hardcoded_llm_model']), 'reject'],
      [replyWith('escalate'), 'escalate'],
      [Buffer.from('prose'), 'escalate'],
    ] as const) {
      const { input } = await validReview({ response });
      expect((await verifyReview(input)).review?.verdict).toBe(expected);
    }
    const { input } = await validReview({ containment: { shared: 9, total: 10 } });
    expect((await verifyReview(input)).review?.reasonCodes).toEqual(['similarity_high_risk']);
  });

  it('has evidence in the one spelling of its bytes', async () => {
    const { findings_b64 } = valid.submission.evidence;
    const loose = findings_b64.replace(/.==?$/, (end) =>
      end[0] === 'Q' ? `R${end.slice(1)}` : `Q${end.slice(1)}`,
    );
    expect(await outcome({ reportBytes: withEvidence({ findings_b64: loose }) })).toMatch(/^findings: /);
    expect(await outcome({ reportBytes: withEvidence({ findings_b64: '!' }) })).toBe(
      'report_schema: schema_invalid',
    );
  });
});

describe('quotes of one domain offered in another', () => {
  it("an eval image's quote is no review's, by its measurement", async () => {
    const { platform: evalPlatform } = await validResult();
    const assignment = signedAssignment(evalPlatform, valid.keys);
    const submission = reviewFor(evalPlatform, assignment);
    const found = await outcome({
      assignmentBytes: bytesOf(assignment),
      reportBytes: bytesOf(submission),
      rootDer: evalPlatform.rootDer,
      collateral: evalPlatform.collateral,
    });
    expect(found).toBe('measurement: measurement_not_allowed');
  });

  it("a score's quote of the very same image is no review's, by its report data", async () => {
    const { plan } = signedPlan(valid.platform);
    const { attestation } = resultFor(valid.platform, plan).execution_proof;
    const report = { ...valid.submission.report, attestation };
    expect(await outcome({ reportBytes: bytesOf({ ...valid.submission, report }) })).toBe(
      'report_data: report_data_mismatch',
    );
  });

  it("and a review's quote is no score's", async () => {
    const { platform, input, result, plan } = await validResult();
    const review = reviewFor(platform, valid.assignment).report.attestation;
    const scored = structuredClone(result);
    scored.execution_proof.attestation.tdx_quote = review.tdx_quote;
    const same = await verifyResult({ ...input, resultBytes: bytesOf(scored) });
    expect(failedCheck(same.checks)?.code).toBe('report_data_mismatch');
    const reviewer = await reviewPlatform();
    scored.execution_proof.attestation = resultFor(reviewer, plan).execution_proof.attestation;
    const { rootDer, collateral } = reviewer;
    const other = await verifyResult({ ...input, rootDer, collateral, resultBytes: bytesOf(scored) });
    expect(failedCheck(other.checks)?.code).toBe('measurement_not_allowed');
  });

  it('and neither document is read as the other', async () => {
    const { input, result } = await validResult();
    expect(await outcome({ reportBytes: bytesOf(result) })).toBe('report_schema: schema_invalid');
    const { checks } = await verifyResult({ ...input, resultBytes: valid.input.reportBytes });
    expect(failedCheck(checks)?.code).toBe('schema_invalid');
  });
});
