import { attestScore } from '../attest/evidence.ts';
import { verifyRecord } from '../consensus/record.ts';
import { digest } from '../wire/digest.ts';
import { encodeResult, type Result } from '../wire/result.ts';
import type { ScoreRecord } from '../wire/score-record.ts';
import type { Host } from './config.ts';
import { deliver } from './deliver.ts';
import type { Order } from './order.ts';
import type { RunOutcome } from './run.ts';

/** The RESULT of a record: one fresh quote over it, checked before it is used. */
async function attest(order: Order, record: ScoreRecord, host: Host): Promise<Result> {
  const { plan, agentPackage } = order;
  const scoresDigest = digest(record);
  const attestation = await attestScore({
    agent: host.connectAgent(),
    plan,
    agentHash: agentPackage.agentHash,
    scoresDigest,
    taskIds: plan.tasks.map((task) => task.task_id),
  });
  return {
    schema_version: 2,
    eval_run_id: plan.eval_run_id,
    submission_id: plan.submission_id,
    agent_hash: agentPackage.agentHash,
    score_record: record,
    scores_digest: scoresDigest,
    execution_proof: {
      version: 2,
      tier: 'tdx',
      image_digest: plan.eval_app.image_ref.slice(plan.eval_app.image_ref.indexOf('@') + 1),
      plan_digest: record.plan_digest,
      attestation,
    },
  };
}

/**
 * Checks the record as a verifier will, attests it, prints the RESULT line and delivers the same bytes.
 * @throws record_* (a defect of ours: nothing is signed), guest_agent_*, attestation codes, result_*.
 */
export async function emit(
  order: Order,
  outcome: RunOutcome,
  record: ScoreRecord,
  host: Host,
): Promise<void> {
  verifyRecord(record, order.plan, order.pinned);
  const bytes = encodeResult(await attest(order, record, host));
  host.print(`RESULT=${bytes.toString('ascii')}`);
  for (const event of outcome.heldBack) host.journal.write(event);
  const receipt = await deliver(order.plan, bytes, host);
  host.journal.write({ event: 'receipt', receipt });
}
