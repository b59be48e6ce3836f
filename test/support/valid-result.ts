import { createHash, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ResultInput } from '../../challenge/verify/result.ts';
import { parseEventLog } from '../../guest/attest/event-log.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { digest, sha256Hex } from '../../guest/wire/digest.ts';
import { encodeF64be } from '../../guest/wire/f64.ts';
import type { Allowlist } from '../../guest/wire/measurement.ts';
import { type EvalPlan, planDigest } from '../../guest/wire/plan.ts';
import { ed25519PublicHex, type PlanRoot, signPlan, signSigner } from '../../guest/wire/plan-signature.ts';
import { scoreReportData } from '../../guest/wire/report-data.ts';
import { encodeResult, type Result } from '../../guest/wire/result.ts';
import type { RepRecord, ScoreRecord, TaskRecord } from '../../guest/wire/score-record.ts';
import { createPlatform, type Platform, type PlatformOptions } from '../../simulator/platform.ts';

/** A fixed time, so that no test depends on the clock. */
export const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
export const MECHANISM_BYTES = readFileSync(new URL('../../guest/mechanism.yaml', import.meta.url));
export const RUN_TOKEN = 'a-run-token-for-tests-only';

const hash = (text: string) => sha256Hex(text);

/** A simulated TDX machine; `faults` make it a bad one. */
export function testPlatform(options: Partial<PlatformOptions> = {}): Promise<Platform> {
  return createPlatform({
    seed: createHash('sha256').update('valid-result').digest(),
    appCompose: Buffer.from('{"name":"evaluator","runner":"docker-compose"}'),
    nowMs: NOW_MS,
    faults: [],
    ...options,
  });
}

export function allowlistOf(platform: Platform): Allowlist {
  return {
    schema_version: 1,
    entries: [
      {
        measurement: platform.measurement,
        key_provider: platform.keyProvider,
        vm_shape: platform.vmShape,
        os_version: 'simulated',
        image_ref: `registry.invalid/evaluator@sha256:${hash('image')}`,
        git_revision: 'unreleased',
      },
    ],
  };
}

/** What a plan of the test orders; signed by keys made here. */
export interface SignedPlan {
  plan: EvalPlan;
  planBytes: Buffer;
  planRoot: PlanRoot;
}

/** Two tasks, three reps, policy vote, unsealed and unranked. */
export function signedPlan(platform: Platform, overrides: Partial<EvalPlan> = {}): SignedPlan {
  const root = generateKeyPairSync('ed25519');
  const signerKey = generateKeyPairSync('ed25519');
  const signer = signSigner(
    {
      public_key: ed25519PublicHex(signerKey.publicKey),
      challenge_id: 'test-challenge',
      not_before_ms: NOW_MS - 1000,
      not_after_ms: NOW_MS + 86_400_000,
    },
    root.privateKey,
  );
  const task = (name: string) => ({
    task_id: name,
    task_digest: hash(`${name}/digest`),
    image: `sha256:${hash(`${name}/image`)}`,
    verifier: 'restart' as const,
    network: 'none' as const,
    budgets: { cpu_budget_ms: 60_000, wall_budget_ms: 120_000 },
  });
  const plan = signPlan(
    {
      schema_version: 2,
      challenge_id: 'test-challenge',
      signer,
      eval_run_id: 'run-1',
      submission_id: 'submission-1',
      ranked: false,
      track: 'terminal-bench',
      policy: 'vote',
      selection_seed: hash('seed'),
      cache_digest: hash('cache'),
      toolchain_digest: hash('toolchain'),
      agent_runtime_image: null,
      max_grants: 2,
      authorizing_review_digest: null,
      agent: {
        agent_hash: hash('agent'),
        zip_size_bytes: 100,
        artifact_url: 'https://127.0.0.1:1/evaluation/v1/runs/run-1/artifact',
        env: [],
      },
      mechanism_digest: sha256Hex(MECHANISM_BYTES),
      r: 3,
      tasks: [task('task-a'), task('task-b')],
      n_concurrent: 2,
      eval_app: {
        image_ref: `registry.invalid/evaluator@sha256:${hash('image')}`,
        compose_hash: platform.measurement.compose_hash,
        measurement: platform.measurement,
        key_provider: platform.keyProvider,
        vm_shape: platform.vmShape,
      },
      server_ca_pem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      key_release: null,
      result: { url: 'https://127.0.0.1:1/evaluation/v1/runs/run-1/result' },
      score_nonce: 'score-nonce-1',
      run_token_sha256: sha256Hex(RUN_TOKEN),
      issued_at_ms: NOW_MS,
      expires_at_ms: NOW_MS + 3_600_000,
      ...overrides,
    },
    signerKey.privateKey,
  );
  return {
    plan,
    planBytes: encodeCanonical(plan),
    planRoot: { publicKey: ed25519PublicHex(root.publicKey), challengeId: plan.challenge_id },
  };
}

function rep(taskId: string, index: number, image: string): RepRecord {
  const reward = taskId === 'task-b' && index === 0 ? 0 : 1;
  return {
    rep: index,
    outcome: 'completed',
    value: { reward_f64be: encodeF64be(reward) },
    failure: null,
    started_ms: index * 10,
    wall_ms: 1000,
    cpu_ms: 500,
    memory_peak_bytes: 1 << 20,
    oom_kills: 0,
    throttled_ms: 0,
    image_id: image,
    container_id: hash(`${taskId}/${index}`),
    probe_sha256: hash(`${taskId}/${index}/probe`),
    verifier_mode: 'restart',
    start_retries: 0,
  };
}

/** Every task passes: in task-b by two votes of three. */
export function scoreRecord(plan: EvalPlan): ScoreRecord {
  const tasks = plan.tasks.map(
    (task): TaskRecord => ({
      task_id: task.task_id,
      image_source: 'baked',
      limits: {
        nano_cpus: 1_000_000_000,
        memory_bytes: 2 ** 31,
        storage_bytes: 2 ** 30,
        cpu_budget_ms: 60_000,
        wall_budget_ms: 120_000,
      },
      verdict: 'PASS',
      score_f64be: encodeF64be(1),
      completed: plan.r,
      reps: Array.from({ length: plan.r }, (_, index) =>
        rep(task.task_id, index, task.image.startsWith('sha256:') ? task.image : `sha256:${hash('pulled')}`),
      ),
    }),
  );
  return {
    schema_version: 2,
    eval_run_id: plan.eval_run_id,
    grant_id: null,
    plan_digest: planDigest(plan),
    mechanism_digest: plan.mechanism_digest,
    cache_digest: plan.cache_digest,
    toolchain_digest: plan.toolchain_digest,
    track: plan.track,
    r: plan.r,
    ranked: plan.ranked,
    tasks,
    final: { score_f64be: encodeF64be(1), passed_tasks: tasks.length, total_tasks: tasks.length },
    agent_runtime_image: plan.agent_runtime_image,
    dependencies: [],
    machine: { cpus: 4, memory_bytes: 2 ** 33 },
    infra: { faults: 0, retried: 0 },
  };
}

/** A RESULT for `plan` as an honest guest on `platform` would send it. */
export function resultFor(platform: Platform, plan: EvalPlan, record = scoreRecord(plan)): Result {
  const reportData = scoreReportData({
    agentHash: plan.agent.agent_hash,
    measurement: platform.measurement,
    evalRunId: plan.eval_run_id,
    scoreNonce: plan.score_nonce,
    scoresDigest: digest(record),
    taskIds: plan.tasks.map((task) => task.task_id),
  });
  return {
    schema_version: 2,
    eval_run_id: plan.eval_run_id,
    submission_id: plan.submission_id,
    agent_hash: plan.agent.agent_hash,
    score_record: record,
    scores_digest: digest(record),
    execution_proof: {
      version: 2,
      tier: 'tdx',
      image_digest: plan.eval_app.image_ref.slice(plan.eval_app.image_ref.indexOf('@') + 1),
      plan_digest: planDigest(plan),
      attestation: {
        tdx_quote: platform.quote(reportData, { version: 4 }).toString('hex'),
        event_log: parseEventLog(platform.eventLog),
        report_data: reportData.toString('hex'),
        measurement: platform.measurement,
        vm_config: platform.vmShape,
      },
    },
  };
}

export interface ValidResult extends SignedPlan {
  platform: Platform;
  result: Result;
  /** What `verifyResult` takes; verified as it is. */
  input: ResultInput;
}

/** A RESULT, its plan and everything that verifies it, in memory. */
export async function validResult(options: Partial<PlatformOptions> = {}): Promise<ValidResult> {
  const platform = await testPlatform(options);
  const signed = signedPlan(platform);
  const result = resultFor(platform, signed.plan);
  const input: ResultInput = {
    resultBytes: encodeResult(result),
    planBytes: signed.planBytes,
    planRoot: signed.planRoot,
    mechanismBytes: MECHANISM_BYTES,
    allowlist: allowlistOf(platform),
    rootDer: platform.rootDer,
    collateral: platform.collateral,
    acceptedTcb: new Set(['UpToDate']),
    nowMs: NOW_MS,
  };
  return { platform, ...signed, result, input };
}
