import type { AcceptancePolicy } from '../../challenge/accept.ts';
import { type Challenge, startChallenge } from '../../challenge/challenge.ts';
import { NO_LABELS } from '../../challenge/labels.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { NO_REVIEWS } from '../../challenge/reviews.ts';
import { issueServerIdentity, type ServerIdentity } from '../../challenge/tls.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { encodeResult } from '../../guest/wire/result.ts';
import type { Platform } from '../../simulator/platform.ts';
import { call, type HttpReply } from './challenge-process.ts';
import {
  allowlistOf,
  MECHANISM_BYTES,
  NOW_MS,
  RUN_TOKEN,
  resultFor,
  type SignedPlan,
  signedPlan,
  testPlatform,
} from './valid-result.ts';

/** The server's certificate is judged by the real clock, so it is issued by that one. */
let identity: Promise<ServerIdentity> | undefined;

export interface TestChallenge extends Challenge, SignedPlan {
  ledger: SqliteLedger;
  clock: { nowMs: number };
  log: Record<string, unknown>[];
  caPem: string;
  /** A RESULT that is accepted. */
  body: Buffer;
  runUrl: string;
  post(body: Buffer, token?: string): Promise<HttpReply>;
  state(): Promise<Record<string, unknown>>;
}

/** A challenge in this process with one prepared run, a clock that a test moves and a ledger in memory. */
export async function testChallenge(
  policy: Partial<AcceptancePolicy> = {},
  machine?: Platform,
  overrides: Partial<EvalPlan> = {},
): Promise<TestChallenge> {
  identity ??= issueServerIdentity('127.0.0.1', Date.now());
  const { caPem } = await identity;
  const platform = machine ?? (await testPlatform());
  const signed = signedPlan(platform, overrides);
  const { plan } = signed;
  const ledger = new SqliteLedger(':memory:');
  ledger.prepare(
    {
      evalRunId: plan.eval_run_id,
      submissionId: plan.submission_id,
      agentHash: plan.agent.agent_hash,
      planBytes: signed.planBytes,
      runTokenSha256: plan.run_token_sha256,
      scoreNonce: plan.score_nonce,
      keyNonce: plan.key_release?.nonce ?? null,
      expiresAtMs: plan.expires_at_ms,
    },
    NOW_MS,
  );
  const clock = { nowMs: NOW_MS };
  const log: Record<string, unknown>[] = [];
  const challenge = await startChallenge({
    ledger,
    policy: {
      planRoot: signed.planRoot,
      mechanismBytes: MECHANISM_BYTES,
      allowlist: allowlistOf(platform),
      rootDer: platform.rootDer,
      acceptedTcb: new Set(['UpToDate']),
      collateral: async () => platform.collateral,
      reviews: NO_REVIEWS,
      labels: NO_LABELS,
      ...policy,
    },
    artifact: () => Buffer.from('the agent'),
    keyRelease: null,
    review: null,
    identity: await identity,
    host: '127.0.0.1',
    port: 0,
    now: () => clock.nowMs,
    log: (event) => log.push(event),
  });
  const runUrl = `${challenge.baseUrl}/evaluation/v1/runs/${plan.eval_run_id}`;
  const access = { ca: caPem, token: RUN_TOKEN };
  return {
    ...challenge,
    ...signed,
    ledger,
    clock,
    log,
    caPem,
    runUrl,
    body: encodeResult(resultFor(platform, plan)),
    post: (body, token = RUN_TOKEN) => call(`${runUrl}/result`, { ...access, method: 'POST', body, token }),
    state: async () => {
      await challenge.acceptor.idle();
      return (await call(runUrl, { ...access, method: 'GET' })).json;
    },
  };
}
