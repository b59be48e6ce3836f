import { judge } from '../challenge/accept.ts';
import { NO_LABELS } from '../challenge/labels.ts';
import { NO_REVIEWS } from '../challenge/reviews.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import { encodeResult } from '../guest/wire/result.ts';
import {
  allowlistOf,
  MECHANISM_BYTES,
  NOW_MS,
  resultFor,
  signedPlan,
  testPlatform,
} from '../test/support/valid-result.ts';
import { spread } from './statistics.ts';

/** Acceptance of a RESULT of 89 tasks with 5 reps each: everything between its receipt and its score. */
const TASKS = 89;
const REPS = 5;
const RUNS = 60;

const platform = await testPlatform();
const [template] = signedPlan(platform).plan.tasks;
if (!template) throw new Error('a plan has tasks');
const tasks = Array.from({ length: TASKS }, (_, i) => {
  const taskId = `task-${String(i).padStart(3, '0')}`;
  return {
    ...template,
    task_id: taskId,
    task_digest: sha256Hex(taskId),
    image: `sha256:${sha256Hex(taskId)}`,
  };
});
const { plan, planBytes, planRoot } = signedPlan(platform, { tasks, r: REPS });
const resultBytes = encodeResult(resultFor(platform, plan));
const run = {
  evalRunId: plan.eval_run_id,
  submissionId: plan.submission_id,
  agentHash: plan.agent.agent_hash,
  planBytes,
  runTokenSha256: plan.run_token_sha256,
  scoreNonce: plan.score_nonce,
  keyNonce: null,
  expiresAtMs: plan.expires_at_ms,
  state: 'received' as const,
  reasonCode: null,
  scoreF64be: null,
};
const receipt = {
  evalRunId: run.evalRunId,
  resultSha256: sha256Hex(resultBytes),
  receivedAtMs: NOW_MS,
  resultBytes,
};
const policy = {
  planRoot,
  mechanismBytes: MECHANISM_BYTES,
  allowlist: allowlistOf(platform),
  rootDer: platform.rootDer,
  acceptedTcb: new Set(['UpToDate']),
  collateral: async () => platform.collateral,
  reviews: NO_REVIEWS,
  labels: NO_LABELS,
};
const samples: number[] = [];
for (let i = 0; i < RUNS; i++) {
  const start = performance.now();
  const judgement = await judge(run, receipt, { grants: [], started: null }, policy, NOW_MS);
  if (judgement.kind !== 'accepted') throw new Error(`not accepted: ${judgement.reason}`);
  samples.push(performance.now() - start);
}
console.log(
  `acceptance, ${TASKS} tasks × ${REPS} reps, ${Math.round(resultBytes.length / 1024)} KiB: ` +
    `first ${Math.round(samples[0] ?? 0)} ms, then p50 / p95 / max ms ${spread(samples.slice(1))}`,
);
