import { verifyPlanAgainstMechanism } from '../guest/consensus/plan-mechanism.ts';
import { type Code, EvaluatorError, isEvaluatorError } from '../guest/errors.ts';
import type { Allowlist } from '../guest/wire/measurement.ts';
import { parseMechanism } from '../guest/wire/mechanism.ts';
import { type EvalPlan, parsePlan } from '../guest/wire/plan.ts';
import { type PlanRoot, verifyPlanSignatures } from '../guest/wire/plan-signature.ts';
import { parseResult, type Result } from '../guest/wire/result.ts';
import { behaviouralScore } from './behavioural-score.ts';
import { type Eligibility, eligibilityOf } from './eligible.ts';
import type { LabelStore } from './labels.ts';
import type { Ledger, Run, StoredReceipt } from './ledger/ledger.ts';
import type { ReviewStore } from './reviews.ts';
import { createSerialQueue } from './serial-queue.ts';
import { failedCheck } from './verify/checklist.ts';
import type { VerifiedEvidence } from './verify/evidence.ts';
import { type GrantFile, verifyGrant } from './verify/grant.ts';
import { isOutage } from './verify/outage.ts';
import { verifyResult } from './verify/result.ts';

/**
 * Intel's statements for the platform of a quote.
 * @throws collateral_unavailable when there are none right now: an outage, never a rejection.
 */
export type CollateralSource = (quoteBytes: Buffer) => Promise<unknown>;

/** What a RESULT is judged by; nothing of it comes from the RESULT. */
export interface AcceptancePolicy {
  planRoot: PlanRoot;
  mechanismBytes: Buffer;
  allowlist: Allowlist;
  rootDer: Buffer;
  acceptedTcb: ReadonlySet<string>;
  collateral: CollateralSource;
  /** Reviews that admitted runs, which may be revoked since. */
  reviews: Pick<ReviewStore, 'verifyStanding'>;
  /** What scores a behavioural track, whose record has no figure of its own. */
  labels: LabelStore;
}

export type Judgement =
  | { kind: 'accepted'; scoreF64be: string; eligibility: Eligibility }
  | { kind: 'rejected'; reason: Code }
  | { kind: 'outage'; reason: Code };

/**
 * Why nothing can be judged: the stored plan is this challenge's own, so that one which does not fit what it is
 * configured with now says nothing about a RESULT.
 */
function planTrouble({ planBytes }: Run, { planRoot, mechanismBytes }: AcceptancePolicy): Code | null {
  try {
    const plan = parsePlan(planBytes);
    verifyPlanSignatures(plan, planRoot);
    verifyPlanAgainstMechanism(plan, parseMechanism(mechanismBytes));
    return null;
  } catch (error) {
    if (isEvaluatorError(error)) return error.code;
    throw error;
  }
}

/** The grant that a verified RESULT was made under; null when it is a good one, or none was needed. */
function grantRefusal(
  plan: EvalPlan,
  { score_record: { grant_id: grantId } }: Result,
  { quote, claims }: VerifiedEvidence,
  file: GrantFile,
): Judgement | null {
  if (plan.key_release === null) return null;
  try {
    verifyGrant({ grantId, quote, claims }, file);
    return null;
  } catch (error) {
    if (isEvaluatorError(error)) return { kind: 'rejected', reason: error.code };
    throw error;
  }
}

/** The review that admitted the run; null when it stands, or none was needed. */
function reviewRefusal(
  { authorizing_review_digest: digest }: EvalPlan,
  { reviews }: AcceptancePolicy,
): Judgement | null {
  if (digest === null) return null;
  try {
    reviews.verifyStanding(digest);
    return null;
  } catch (error) {
    if (!isEvaluatorError(error)) throw error;
    // That it was taken back speaks against the RESULT; of anything else only this challenge can be the cause.
    return { kind: error.code === 'review_revoked' ? 'rejected' : 'outage', reason: error.code };
  }
}

/**
 * Judges stored bytes against the stored plan at `nowMs`; writes nothing.
 * @param file what the ledger knows of the run's keys.
 */
export async function judge(
  run: Run,
  receipt: StoredReceipt,
  file: GrantFile,
  policy: AcceptancePolicy,
  nowMs: number,
): Promise<Judgement> {
  const trouble = planTrouble(run, policy);
  if (trouble !== null) return { kind: 'outage', reason: trouble };
  const result = parseResult(receipt.resultBytes);
  let collateral: unknown;
  try {
    collateral = await policy.collateral(Buffer.from(result.execution_proof.attestation.tdx_quote, 'hex'));
  } catch (error) {
    if (isEvaluatorError(error, 'collateral_unavailable')) return { kind: 'outage', reason: error.code };
    throw error;
  }
  const { planRoot, mechanismBytes, allowlist, rootDer, acceptedTcb } = policy;
  const { evidence, checks } = await verifyResult({
    resultBytes: receipt.resultBytes,
    planBytes: run.planBytes,
    planRoot,
    mechanismBytes,
    allowlist,
    rootDer,
    acceptedTcb,
    collateral,
    nowMs,
  });
  if (!evidence) {
    const reason = failedCheck(checks)?.code ?? 'verifier_failed';
    return { kind: isOutage(reason) ? 'outage' : 'rejected', reason };
  }
  const plan = parsePlan(run.planBytes);
  return (
    grantRefusal(plan, result, evidence, file) ?? reviewRefusal(plan, policy) ?? scored(plan, result, policy)
  );
}

/** Labels that are not at hand are an outage of this challenge: the run waits, and is not the agent's to lose. */
function scored(
  plan: EvalPlan,
  { score_record: { final, tasks } }: Result,
  { labels, mechanismBytes }: AcceptancePolicy,
): Judgement {
  try {
    const scoreF64be = final.score_f64be ?? behaviouralScore(plan, tasks, labels);
    const { mechanism } = parseMechanism(mechanismBytes);
    return { kind: 'accepted', scoreF64be, eligibility: eligibilityOf(plan, scoreF64be, mechanism) };
  } catch (error) {
    if (isEvaluatorError(error, 'score_not_computable')) return { kind: 'outage', reason: error.code };
    throw error;
  }
}

/** Writes a judgement into the ledger; a parked run that cannot be judged yet stays as it is. */
export function settle(ledger: Ledger, run: Run, judgement: Judgement, nowMs: number): void {
  if (judgement.kind === 'outage') {
    if (run.state !== 'parked') ledger.park(run.evalRunId, judgement.reason, nowMs);
    return;
  }
  if (judgement.kind === 'rejected') {
    ledger.reject(run.evalRunId, judgement.reason, nowMs);
    return;
  }
  try {
    ledger.accept(run.evalRunId, judgement.scoreF64be, nowMs);
  } catch (error) {
    if (!isEvaluatorError(error, 'score_nonce_consumed')) throw error;
    ledger.reject(run.evalRunId, error.code, nowMs);
  }
}

export interface Acceptor {
  /** Judges a received run after those before it; does not wait. */
  enqueue(evalRunId: string): void;
  /** Enqueues whatever has a receipt and no judgement: at start, and to retry parked ones. */
  enqueueOpen(): void;
  /** Resolves when the queue is empty. */
  idle(): Promise<void>;
}

export interface AcceptorOptions {
  ledger: Ledger;
  policy: AcceptancePolicy;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Told of each judgement, and of a verifier that failed: its run stays open and is tried again. */
  onJudged: (evalRunId: string, outcome: Judgement | EvaluatorError) => void;
}

/** One judgement at a time. */
export function createAcceptor({ ledger, policy, now, onJudged }: AcceptorOptions): Acceptor {
  const judgeOne = async (evalRunId: string): Promise<void> => {
    try {
      const [run, receipt] = [ledger.run(evalRunId), ledger.receipt(evalRunId)];
      if (!run || !receipt || (run.state !== 'received' && run.state !== 'parked')) return;
      const file = { grants: ledger.grants(evalRunId), started: ledger.started(evalRunId) };
      const judgement = await judge(run, receipt, file, policy, now());
      settle(ledger, run, judgement, now());
      onJudged(evalRunId, judgement);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : 'unknown';
      onJudged(evalRunId, new EvaluatorError('verifier_failed', `verifier: ${message}`, { cause }));
    }
  };
  const { enqueue, idle } = createSerialQueue(judgeOne);
  return {
    enqueue,
    idle,
    enqueueOpen: () => {
      for (const run of ledger.runsIn(['received', 'parked'])) enqueue(run.evalRunId);
    },
  };
}
