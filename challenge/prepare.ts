import { randomBytes } from 'node:crypto';
import { verifyPlanAgainstMechanism } from '../guest/consensus/plan-mechanism.ts';
import { trackKind } from '../guest/consensus/track-kind.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import type { PinnedMechanism } from '../guest/wire/mechanism.ts';
import type { EvalPlan } from '../guest/wire/plan.ts';
import { type IssuedPlan, type Issuer, issuePlan } from './issue-plan.ts';
import type { LabelStore } from './labels.ts';
import type { Ledger } from './ledger/ledger.ts';
import { PARKED_FOR_MS } from './ledger/parking.ts';
import type { ReviewStore } from './reviews.ts';

/** What is to be evaluated, and how. */
export interface RunRequest {
  submissionId: string;
  hotkey: string;
  agentZip: Buffer;
  agentEnv: readonly string[];
  /** What a brokered agent's sandboxes are made from; null for a container agent. */
  agentRuntimeImage: string | null;
  cache: Pick<EvalPlan, 'cache_digest' | 'toolchain_digest' | 'tasks'> & {
    /** Null: not sealed, never ranked. */
    cache_id: string | null;
  };
  n: number;
  terms: Pick<EvalPlan, 'ranked' | 'track' | 'policy' | 'r' | 'n_concurrent' | 'eval_app'>;
  mechanism: PinnedMechanism;
  ttlMs: number;
  /** `reviewed`: the agent's review is asked for although the run is not ranked. A ranked run always asks. */
  admission: 'reviewed' | 'open';
}

/** Where the challenge is reached. */
export interface Endpoint {
  /** `https://host:port`. */
  baseUrl: string;
  /** Of the key release, which has a port of its own; null where none is served. */
  keyReleaseUrl: string | null;
  caPem: string;
}

/** Runs that a guest which died before its agents started may be tried again for. */
const MAX_GRANTS = 2;

export interface PrepareDeps {
  issuer: Issuer;
  ledger: Ledger;
  reviews: ReviewStore;
  labels: LabelStore;
  /**
   * Keeps a run's token, before the run is committed: one whose token nobody has would stand in its agent's way
   * until its plan ends.
   */
  keepToken: (evalRunId: string, runToken: string) => void;
}

export interface PreparedRun extends IssuedPlan {
  /** Given to the guest's owner; only its hash is kept in the ledger. */
  runToken: string;
}

function keyRelease(request: RunRequest, endpoint: Endpoint, evalRunId: string): EvalPlan['key_release'] {
  if (request.cache.cache_id === null || endpoint.keyReleaseUrl === null) return null;
  return {
    url: `${endpoint.keyReleaseUrl}/key-release/v1/runs/${evalRunId}`,
    nonce: randomBytes(32).toString('hex'),
  };
}

/**
 * Issues a plan and commits it; nothing is served for a run that is not in the ledger. A ranked run needs a
 * review that allows this agent, verified anew and fresh by the challenge's clock (spec/07).
 * @throws selection_impossible, plan_inconsistent, plan_contradicts_mechanism, track_unknown; score_not_computable;
 *   review_*;
 *   agent_run_open, agent_already_scored, agent_no_result.
 */
export async function prepareRun(
  request: RunRequest,
  endpoint: Endpoint,
  { issuer, ledger, reviews, labels, keepToken }: PrepareDeps,
  nowMs: number,
): Promise<PreparedRun> {
  const { agentZip, cache, terms, mechanism } = request;
  const evalRunId = `run-${randomBytes(16).toString('hex')}`;
  const runToken = randomBytes(32).toString('base64url');
  const agentHash = sha256Hex(agentZip);
  const review =
    terms.ranked || request.admission === 'reviewed' ? await reviews.admit(agentHash, nowMs) : null;
  ledger.closeOverdue(nowMs, PARKED_FOR_MS);
  const runUrl = `${endpoint.baseUrl}/evaluation/v1/runs/${evalRunId}`;
  const issued = issuePlan(
    {
      ...terms,
      mechanism_digest: mechanism.digest,
      eval_run_id: evalRunId,
      submission_id: request.submissionId,
      cache_digest: cache.cache_digest,
      toolchain_digest: cache.toolchain_digest,
      agent_runtime_image: request.agentRuntimeImage,
      max_grants: MAX_GRANTS,
      authorizing_review_digest: review?.digest ?? null,
      agent: {
        agent_hash: agentHash,
        zip_size_bytes: agentZip.length,
        artifact_url: `${runUrl}/artifact`,
        env: [...request.agentEnv],
      },
      server_ca_pem: endpoint.caPem,
      key_release: keyRelease(request, endpoint, evalRunId),
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
        cacheId: cache.cache_id ?? cache.cache_digest,
        mechanismDigest: mechanism.digest,
      },
    },
    issuer,
  );
  const { plan, planBytes } = issued;
  verifyPlanAgainstMechanism(plan, mechanism);
  // Nobody runs for a score that cannot be computed.
  if (trackKind(plan.track) === 'behavioural') labels.labelsOf(plan);
  keepToken(evalRunId, runToken);
  ledger.prepare(
    {
      evalRunId,
      submissionId: plan.submission_id,
      agentHash,
      planBytes,
      runTokenSha256: plan.run_token_sha256,
      scoreNonce: plan.score_nonce,
      keyNonce: plan.key_release?.nonce ?? null,
      expiresAtMs: plan.expires_at_ms,
    },
    nowMs,
  );
  return { ...issued, runToken };
}
