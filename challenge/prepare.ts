import { randomBytes } from 'node:crypto';
import { verifyPlanAgainstMechanism } from '../guest/consensus/plan-mechanism.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import type { PinnedMechanism } from '../guest/wire/mechanism.ts';
import type { EvalPlan } from '../guest/wire/plan.ts';
import { type IssuedPlan, type Issuer, issuePlan } from './issue-plan.ts';
import type { Ledger } from './ledger/ledger.ts';

/** What is to be evaluated, and how. */
export interface RunRequest {
  submissionId: string;
  hotkey: string;
  agentZip: Buffer;
  agentEnv: readonly string[];
  cache: Pick<EvalPlan, 'cache_digest' | 'toolchain_digest' | 'tasks'>;
  n: number;
  terms: Pick<EvalPlan, 'ranked' | 'track' | 'policy' | 'r' | 'n_concurrent' | 'eval_app'>;
  mechanism: PinnedMechanism;
  ttlMs: number;
}

/** Where the challenge is reached. */
export interface Endpoint {
  /** `https://host:port`. */
  baseUrl: string;
  caPem: string;
}

export interface PreparedRun extends IssuedPlan {
  /** Given to the guest's owner; only its hash is kept in the ledger. */
  runToken: string;
}

/**
 * Issues the plan of an unsealed run and commits it; nothing is served for a run that is not in the ledger.
 * @throws selection_impossible, plan_inconsistent, plan_contradicts_mechanism, track_unknown.
 */
export function prepareRun(
  request: RunRequest,
  endpoint: Endpoint,
  issuer: Issuer,
  ledger: Ledger,
  nowMs: number,
): PreparedRun {
  const { agentZip, cache, terms, mechanism } = request;
  const evalRunId = `run-${randomBytes(16).toString('hex')}`;
  const runToken = randomBytes(32).toString('base64url');
  const agentHash = sha256Hex(agentZip);
  const runUrl = `${endpoint.baseUrl}/evaluation/v1/runs/${evalRunId}`;
  const issued = issuePlan(
    {
      ...terms,
      mechanism_digest: mechanism.digest,
      eval_run_id: evalRunId,
      submission_id: request.submissionId,
      cache_digest: cache.cache_digest,
      toolchain_digest: cache.toolchain_digest,
      agent_runtime_image: null,
      max_grants: 2,
      authorizing_review_digest: null,
      agent: {
        agent_hash: agentHash,
        zip_size_bytes: agentZip.length,
        artifact_url: `${runUrl}/artifact`,
        env: [...request.agentEnv],
      },
      server_ca_pem: endpoint.caPem,
      key_release: null,
      result: { url: `${runUrl}/result` },
      score_nonce: randomBytes(32).toString('hex'),
      run_token_sha256: sha256Hex(runToken),
      issued_at_ms: nowMs,
      expires_at_ms: nowMs + request.ttlMs,
      candidates: cache.tasks,
      n: request.n,
      draw: {
        hotkey: request.hotkey,
        agentHash,
        cacheId: cache.cache_digest,
        mechanismDigest: mechanism.digest,
      },
    },
    issuer,
  );
  const { plan, planBytes } = issued;
  verifyPlanAgainstMechanism(plan, mechanism);
  ledger.prepare(
    {
      evalRunId,
      submissionId: plan.submission_id,
      agentHash,
      planBytes,
      runTokenSha256: plan.run_token_sha256,
      scoreNonce: plan.score_nonce,
      expiresAtMs: plan.expires_at_ms,
    },
    nowMs,
  );
  return { ...issued, runToken };
}
