import { verifyRecord } from '../../guest/consensus/record.ts';
import { decodeCanonical } from '../../guest/wire/canonical.ts';
import { digest } from '../../guest/wire/digest.ts';
import { type PinnedMechanism, parseMechanism, trackRules } from '../../guest/wire/mechanism.ts';
import { type EvalPlan, parsePlan, planDigest } from '../../guest/wire/plan.ts';
import { type PlanRoot, verifyPlanSignatures } from '../../guest/wire/plan-signature.ts';
import { scoreReportData } from '../../guest/wire/report-data.ts';
import { MAX_RESULT_BYTES, type Result, resultSchema } from '../../guest/wire/result.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import { type CheckReport, runChecklist } from './checklist.ts';
import { checkEvidence, EVIDENCE_CHECKS, type TrustPolicy, type VerifiedEvidence } from './evidence.ts';
import { requireEqual } from './require-equal.ts';

/** Everything a RESULT is checked for, in the order of spec/07; `docs/verification.md` explains each. */
export const RESULT_CHECKS = [
  'result_canonical',
  'result_schema',
  'plan_document',
  'plan_signatures',
  'result_ids',
  'plan_digest',
  'mechanism_digest',
  'agent_hash',
  'image_digest',
  'score_record',
  'scores_digest',
  ...EVIDENCE_CHECKS,
  'attested_measurement',
  'attested_report_data',
  'vm_shape',
] as const;
/** Not part of the list: what a RESULT alone cannot show. */
const BEHAVIOURAL_CHECK = 'behavioural_score';
export const GRANT_CHECK = 'grant';

export interface ResultInput extends TrustPolicy {
  /** The exact bytes. */
  resultBytes: Buffer;
  planBytes: Buffer;
  planRoot: PlanRoot;
  mechanismBytes: Buffer;
}

export interface ResultVerdict {
  /** True only when every check of the list passed. */
  verified: boolean;
  checks: CheckReport[];
  /** What the quote and its log show; null unless verified. */
  evidence: VerifiedEvidence | null;
}

function verifyIds(result: Result, plan: EvalPlan): void {
  requireEqual('result_ids_mismatch', 'result: eval_run_id', result.eval_run_id, plan.eval_run_id);
  requireEqual('result_ids_mismatch', 'result: submission_id', result.submission_id, plan.submission_id);
}

/** The mechanism's bytes are those that plan and record name. */
function verifyMechanism(result: Result, plan: EvalPlan, bytes: Buffer): PinnedMechanism {
  const pinned = parseMechanism(bytes);
  const code = 'mechanism_digest_mismatch';
  requireEqual(code, 'plan: mechanism_digest', plan.mechanism_digest, pinned.digest);
  requireEqual(code, 'record: mechanism_digest', result.score_record.mechanism_digest, pinned.digest);
  return pinned;
}

function verifyPlanDigest(result: Result, plan: EvalPlan): void {
  const expected = planDigest(plan);
  requireEqual('plan_digest_mismatch', 'proof: plan_digest', result.execution_proof.plan_digest, expected);
  requireEqual('plan_digest_mismatch', 'record: plan_digest', result.score_record.plan_digest, expected);
}

function imageDigest(plan: EvalPlan): string {
  return plan.eval_app.image_ref.slice(plan.eval_app.image_ref.lastIndexOf('@') + 1);
}

/** Report data that this RESULT's quote must carry: what is measured comes from the plan, never the body. */
export function expectedReportData(result: Result, plan: EvalPlan): Buffer {
  return scoreReportData({
    agentHash: plan.agent.agent_hash,
    measurement: plan.eval_app.measurement,
    evalRunId: plan.eval_run_id,
    scoreNonce: plan.score_nonce,
    scoresDigest: digest(result.score_record),
    taskIds: plan.tasks.map((task) => task.task_id),
  });
}

function verifyAttestedMeasurement(result: Result, plan: EvalPlan, evidence: VerifiedEvidence): void {
  const code = 'attested_measurement_mismatch';
  const { attestation } = result.execution_proof;
  requireEqual(code, 'attestation: measurement', attestation.measurement, evidence.measurement);
  requireEqual(code, 'plan: eval_app.measurement', plan.eval_app.measurement, evidence.measurement);
  requireEqual(code, 'plan: eval_app.key_provider', plan.eval_app.key_provider, evidence.keyProvider);
}

/** What `grant` reports: whom the keys were given to is known to the challenge's ledger alone. */
function grantReport(plan: EvalPlan): CheckReport[] {
  if (plan.key_release === null) return [];
  const detail = 'checked by the challenge alone, which gave it';
  return [{ name: GRANT_CHECK, status: 'not_checked', code: null, detail }];
}

/** What `behavioural_score` reports: only a holder of the labels can compute it. */
function behaviouralReport(plan: EvalPlan, pinned: PinnedMechanism): CheckReport[] {
  if (trackRules(pinned.mechanism, plan.track).metric !== 'clamped_mcc') return [];
  const detail = 'computed by the challenge alone, where the labels are';
  return [{ name: BEHAVIOURAL_CHECK, status: 'not_checked', code: null, detail }];
}

/**
 * Checks a RESULT against the plan it answers, without a network and without a secret. It does not judge
 * whether the plan was still open when the RESULT arrived: that is the challenge's clock (spec/07).
 * @throws nothing about the documents: every refusal is a failed check with its code.
 */
export async function verifyResult(input: ResultInput): Promise<ResultVerdict> {
  let extra: CheckReport[] = [];
  let evidence: VerifiedEvidence | null = null;
  const checks = await runChecklist(RESULT_CHECKS, async (check) => {
    const body = await check('result_canonical', 'json_malformed', () =>
      decodeCanonical(input.resultBytes, MAX_RESULT_BYTES),
    );
    const result = await check('result_schema', 'schema_invalid', () =>
      parseSchema(resultSchema, body, 'result'),
    );
    const plan = await check('plan_document', 'plan_inconsistent', () => parsePlan(input.planBytes));
    await check('plan_signatures', 'plan_signature_invalid', () =>
      verifyPlanSignatures(plan, input.planRoot),
    );
    await check('result_ids', 'result_ids_mismatch', () => verifyIds(result, plan));
    await check('plan_digest', 'plan_digest_mismatch', () => verifyPlanDigest(result, plan));
    const pinned = await check('mechanism_digest', 'mechanism_invalid', () =>
      verifyMechanism(result, plan, input.mechanismBytes),
    );
    await check('agent_hash', 'agent_hash_mismatch', () =>
      requireEqual('agent_hash_mismatch', 'result: agent_hash', result.agent_hash, plan.agent.agent_hash),
    );
    const proof = result.execution_proof;
    await check('image_digest', 'image_digest_mismatch', () =>
      requireEqual('image_digest_mismatch', 'proof: image_digest', proof.image_digest, imageDigest(plan)),
    );
    await check('score_record', 'record_run_mismatch', () => verifyRecord(result.score_record, plan, pinned));
    await check('scores_digest', 'scores_digest_mismatch', () =>
      requireEqual(
        'scores_digest_mismatch',
        'result: scores_digest',
        result.scores_digest,
        digest(result.score_record),
      ),
    );
    const reportData = expectedReportData(result, plan);
    const { attestation } = proof;
    const found = await checkEvidence(check, {
      ...input,
      quoteBytes: Buffer.from(attestation.tdx_quote, 'hex'),
      eventLog: attestation.event_log,
      reportData,
    });
    await check('attested_measurement', 'attested_measurement_mismatch', () =>
      verifyAttestedMeasurement(result, plan, found),
    );
    await check('attested_report_data', 'attested_report_data_mismatch', () =>
      requireEqual(
        'attested_report_data_mismatch',
        'attestation: report_data',
        attestation.report_data,
        reportData.toString('hex'),
      ),
    );
    await check('vm_shape', 'vm_shape_mismatch', () =>
      requireEqual(
        'vm_shape_mismatch',
        'attestation: vm_config',
        attestation.vm_config,
        plan.eval_app.vm_shape,
      ),
    );
    extra = [...grantReport(plan), ...behaviouralReport(plan, pinned)];
    evidence = found;
  });
  const verified = checks.every((report) => report.status === 'ok');
  return { verified, checks: [...checks, ...extra], evidence: verified ? evidence : null };
}
