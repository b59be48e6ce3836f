import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { encodeF64be } from '../../guest/wire/f64.ts';
import { type EvalPlan, type PlanTask, planDigest } from '../../guest/wire/plan.ts';
import { ed25519PublicHex, type PlanRoot, signPlan, signSigner } from '../../guest/wire/plan-signature.ts';
import type { RepRecord, ScoreRecord, TaskRecord } from '../../guest/wire/score-record.ts';

export const ISSUED_AT_MS = Date.parse('2026-03-01T12:00:00Z');
export const CHALLENGE_ID = 'challenge-for-tests';
const hash = (text: string) => sha256Hex(text);

export const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

/** Keys of a test's own challenge: the root that a guest is measured with, and a signer under it. */
export interface PlanKeys {
  root: KeyObject;
  signer: KeyObject;
  planRoot: PlanRoot;
}

export function planKeys(): PlanKeys {
  const root = generateKeyPairSync('ed25519').privateKey;
  const signer = generateKeyPairSync('ed25519').privateKey;
  return { root, signer, planRoot: { publicKey: ed25519PublicHex(root), challengeId: CHALLENGE_ID } };
}

export function planTask(taskId: string, overrides: Partial<PlanTask> = {}): PlanTask {
  return {
    task_id: taskId,
    task_digest: hash(`task ${taskId}`),
    image: `sha256:${hash(`image ${taskId}`)}`,
    verifier: 'restart',
    network: 'none',
    budgets: null,
    ...overrides,
  };
}

/** A consistent terminal-bench plan: two tasks, three reps, policy vote, unsealed, unranked. */
export function signedPlan(keys: PlanKeys, overrides: Partial<EvalPlan> = {}): EvalPlan {
  const measurement = {
    mrtd: 'a1'.repeat(48),
    rtmr0: 'b0'.repeat(48),
    rtmr1: 'b1'.repeat(48),
    rtmr2: 'b2'.repeat(48),
    compose_hash: hash('compose'),
    os_image_hash: hash('os'),
  };
  const signer = signSigner(
    {
      public_key: ed25519PublicHex(keys.signer),
      challenge_id: CHALLENGE_ID,
      not_before_ms: ISSUED_AT_MS - 1000,
      not_after_ms: ISSUED_AT_MS + 1000,
    },
    keys.root,
  );
  const plan: Omit<EvalPlan, 'plan_signature'> = {
    schema_version: 2,
    challenge_id: CHALLENGE_ID,
    signer,
    eval_run_id: 'run-001',
    submission_id: 'submission-001',
    ranked: false,
    track: 'terminal-bench',
    policy: 'vote',
    selection_seed: hash('seed'),
    cache_digest: hash('cache'),
    toolchain_digest: null,
    agent_runtime_image: null,
    max_grants: 1,
    authorizing_review_digest: null,
    agent: {
      agent_hash: hash('agent'),
      zip_size_bytes: 1000,
      artifact_url: 'https://127.0.0.1:8443/agents/1.zip',
      env: [],
    },
    mechanism_digest: hash('mechanism'),
    r: 3,
    tasks: [planTask('task-a'), planTask('task-b')],
    n_concurrent: 2,
    eval_app: {
      image_ref: `registry.invalid/evaluator@sha256:${hash('evaluator')}`,
      compose_hash: hash('compose'),
      measurement,
      key_provider: { name: 'phala', id: 'ab'.repeat(32) },
      vm_shape: { vcpu: 2, memory_mb: 4096 },
    },
    server_ca_pem: PEM,
    key_release: null,
    result: { url: 'https://127.0.0.1:8443/evaluation/v1/runs/run-001/result' },
    score_nonce: 'score-nonce-001',
    run_token_sha256: hash('token'),
    issued_at_ms: ISSUED_AT_MS,
    expires_at_ms: ISSUED_AT_MS + 3_600_000,
    ...overrides,
  };
  const { plan_signature: _, ...unsigned } = plan as EvalPlan;
  return signPlan(unsigned, keys.signer);
}

/** What turns a plan into a ranked one. */
export const RANKED: Partial<EvalPlan> = {
  ranked: true,
  key_release: { url: 'https://127.0.0.1:8443/key-release/v1/runs/run-001', nonce: 'key-nonce-001' },
  authorizing_review_digest: hash('review'),
};

/** A completed terminal-bench rep with this reward, or a failed one for null. */
export function rep(taskId: string, index: number, reward: number | null): RepRecord {
  return {
    rep: index,
    outcome: reward === null ? 'failed' : 'completed',
    value: reward === null ? null : { reward_f64be: encodeF64be(reward) },
    failure: reward === null ? 'wall_backstop' : null,
    started_ms: 10,
    wall_ms: 500,
    cpu_ms: 200,
    memory_peak_bytes: 1_000_000,
    oom_kills: 0,
    throttled_ms: 0,
    image_id: `sha256:${hash(`image ${taskId}`)}`,
    container_id: hash(`container ${taskId} ${index}`),
    probe_sha256: hash(`probe ${taskId} ${index}`),
    verifier_mode: reward === null ? null : 'restart',
    start_retries: 0,
  };
}

export function taskRecord(
  taskId: string,
  rewards: readonly (number | null)[],
  reduced: Partial<TaskRecord>,
) {
  return {
    task_id: taskId,
    image_source: 'built',
    limits: {
      nano_cpus: 1_000_000_000,
      memory_bytes: 2 ** 31,
      storage_bytes: 2 ** 33,
      cpu_budget_ms: 60_000,
      wall_budget_ms: 60_000,
    },
    verdict: null,
    score_f64be: encodeF64be(0),
    completed: rewards.filter((reward) => reward !== null).length,
    reps: rewards.map((reward, index) => rep(taskId, index, reward)),
    ...reduced,
  } satisfies TaskRecord;
}

/** A true record of `signedPlan`: task-a passes 2 of 3 (one rep failed), task-b 0 of 3. */
export function scoreRecord(plan: EvalPlan): ScoreRecord {
  return {
    schema_version: 2,
    eval_run_id: plan.eval_run_id,
    grant_id: plan.key_release === null ? null : 'ab'.repeat(16),
    plan_digest: planDigest(plan),
    mechanism_digest: plan.mechanism_digest,
    cache_digest: plan.cache_digest,
    toolchain_digest: plan.toolchain_digest,
    track: plan.track,
    r: plan.r,
    ranked: plan.ranked,
    tasks: [
      taskRecord('task-a', [1, null, 1], { verdict: 'PASS', score_f64be: encodeF64be(1) }),
      taskRecord('task-b', [0, 0, 0], { verdict: 'FAIL', score_f64be: encodeF64be(0) }),
    ],
    final: { score_f64be: encodeF64be(0.5), passed_tasks: 1, total_tasks: 2 },
    agent_runtime_image: plan.agent_runtime_image,
    dependencies: [],
    machine: { cpus: 2, memory_bytes: 2 ** 33 },
    infra: { faults: 0, retried: 0 },
  };
}
