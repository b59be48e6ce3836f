import { createHash } from 'node:crypto';
import { encodeCanonical } from './canonical.ts';
import type { Measurement } from './measurement.ts';

/** The three domains; a quote made for one never fits another (spec/01). */
export const DOMAIN = {
  score: 'base-agent-challenge-v1',
  keyRelease: 'base-agent-challenge-keyrelease-v1',
  review: 'base-agent-challenge-review-v1',
} as const;

export interface ScoreBinding {
  agentHash: string;
  measurement: Measurement;
  evalRunId: string;
  scoreNonce: string;
  scoresDigest: string;
  /** Strictly ascending. */
  taskIds: readonly string[];
}

export function scorePreimage(binding: ScoreBinding) {
  return {
    domain: DOMAIN.score,
    schema_version: 2,
    agent_hash: binding.agentHash,
    canonical_measurement: binding.measurement,
    eval_run_id: binding.evalRunId,
    score_nonce: binding.scoreNonce,
    scores_digest: binding.scoresDigest,
    task_ids: binding.taskIds,
  };
}

/** 64 bytes: sha256 of the canonical preimage, then 32 zero bytes. */
export function reportData(preimage: object): Buffer {
  const head = createHash('sha256').update(encodeCanonical(preimage)).digest();
  return Buffer.concat([head, Buffer.alloc(32)]);
}

/** Report data of the score domain: what a RESULT's quote must carry. */
export function scoreReportData(binding: ScoreBinding): Buffer {
  return reportData(scorePreimage(binding));
}
