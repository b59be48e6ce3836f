import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AcceptancePolicy } from '../../challenge/accept.ts';
import {
  KEY_RELEASE_LIMITS,
  type KeyReleaseLimits,
  startKeyReleaseServer,
} from '../../challenge/key-release/server.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { issueServerIdentity, type ServerIdentity } from '../../challenge/tls.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { pemChain } from '../../simulator/certificates.ts';
import type { Platform } from '../../simulator/platform.ts';
import { createKmsChain } from '../../simulator/tls-key.ts';
import { type ChallengeProcess, challengeConfig } from './challenge-process.ts';
import { type Guest, keyPair } from './key-client.ts';
import { allowlistOf, RUN_TOKEN, signedPlan, testPlatform } from './valid-result.ts';

export const GOLDEN_KEY = Buffer.alloc(32, 0x47);
export const CACHE_ID = sha256Hex('cache id');

let identity: Promise<ServerIdentity> | undefined;

/** TLS judges certificates by the real clock, so everything here happens around it. */
export const livePlatform = (options: Parameters<typeof testPlatform>[0] = {}): Promise<Platform> =>
  testPlatform({ nowMs: Date.now(), ...options });

export interface KeyChallenge {
  platform: Platform;
  plan: EvalPlan;
  ledger: SqliteLedger;
  caPem: string;
  /** Moves this challenge's clock, not TLS's. */
  clock: { skewMs: number };
  /** Codes of the exchanges that had the token, null for one that succeeded. */
  log: (string | null)[];
  /** An honest guest on `platform`, with a certificate of its own. */
  guest(overrides?: Partial<Guest>): Promise<Guest>;
  /** Prepares another run and gives its plan. */
  prepare(overrides: Partial<EvalPlan>): EvalPlan;
  close(): Promise<void>;
}

export interface KeyChallengeOptions {
  platform?: Platform;
  policy?: Partial<AcceptancePolicy>;
  plan?: Partial<EvalPlan>;
  limits?: Partial<KeyReleaseLimits>;
  clientCaPem?: string;
  goldenKey?: Buffer;
  /** A file; in memory by default. */
  ledgerPath?: string;
}

/** Key release in this process: a ledger in memory, one prepared run of a sealed cache. */
export async function keyChallenge(options: KeyChallengeOptions = {}): Promise<KeyChallenge> {
  const platform = options.platform ?? (await livePlatform());
  identity ??= issueServerIdentity('127.0.0.1', Date.now());
  const { caPem } = await identity;
  const ledger = new SqliteLedger(options.ledgerPath ?? ':memory:');
  const clock = { skewMs: 0 };
  const log: (string | null)[] = [];
  const cache = { goldenKey: options.goldenKey ?? GOLDEN_KEY, cacheId: CACHE_ID };
  const server = await startKeyReleaseServer({
    ledger,
    policy: {
      allowlist: allowlistOf(platform),
      rootDer: platform.rootDer,
      acceptedTcb: new Set(['UpToDate']),
      collateral: async () => platform.collateral,
      ...options.policy,
    },
    caches: new Map([[sha256Hex('cache'), cache]]),
    now: () => Date.now() + clock.skewMs,
    onExchange: ({ error }) => log.push(error === null ? null : String((error as { code?: string }).code)),
    identity: await identity,
    clientCaPem: options.clientCaPem ?? pemChain((await createKmsChain(platform)).root),
    host: '127.0.0.1',
    port: 0,
    limits: { ...KEY_RELEASE_LIMITS, ...options.limits },
  });
  const prepare = (overrides: Partial<EvalPlan>): EvalPlan => {
    const evalRunId = overrides.eval_run_id ?? 'run-1';
    const { plan, planBytes } = signedPlan(platform, {
      issued_at_ms: Date.now() - 1000,
      expires_at_ms: Date.now() + 3_600_000,
      server_ca_pem: caPem,
      key_release: {
        url: `https://127.0.0.1:${server.port}/key-release/v1/runs/${evalRunId}`,
        nonce: `key-nonce of ${evalRunId}`.replaceAll(' ', '-'),
      },
      result: { url: `https://127.0.0.1:1/evaluation/v1/runs/${evalRunId}/result` },
      score_nonce: `score-nonce-of-${evalRunId}`,
      ...overrides,
    });
    ledger.prepare(
      {
        evalRunId,
        submissionId: plan.submission_id,
        agentHash: plan.agent.agent_hash,
        planBytes,
        runTokenSha256: plan.run_token_sha256,
        scoreNonce: plan.score_nonce,
        keyNonce: plan.key_release?.nonce ?? null,
        expiresAtMs: plan.expires_at_ms,
      },
      Date.now(),
    );
    return plan;
  };
  const plan = prepare(options.plan ?? {});
  return {
    platform,
    plan,
    ledger,
    caPem,
    clock,
    log,
    prepare,
    guest: async (overrides = {}) => {
      const machine = overrides.platform ?? platform;
      const pair = overrides.pair ?? (await keyPair(machine, plan));
      return { platform: machine, plan, ca: caPem, token: RUN_TOKEN, ...overrides, pair };
    },
    close: async () => {
      await server.close();
      ledger.close();
    },
  };
}

/** A configuration of `challenge/main.ts` with a sealed cache. */
export async function sealedConfig(platform: Platform, overrides: Record<string, unknown> = {}) {
  const config = challengeConfig(platform);
  const keyPath = join(dirname(config.out_dir), 'golden.key');
  writeFileSync(keyPath, `${GOLDEN_KEY.toString('hex')}\n`, { mode: 0o600 });
  return {
    ...config,
    golden_key_path: keyPath,
    client_ca_pem: pemChain((await createKmsChain(platform)).root),
    cache: { ...config.cache, cache_id: CACHE_ID },
    ...overrides,
  };
}

/** An honest guest of a challenge that runs as a process. */
export async function guestOf(challenge: ChallengeProcess, platform: Platform): Promise<Guest> {
  const { plan, runToken } = challenge;
  const pair = await keyPair(platform, plan);
  return { platform, plan, pair, ca: plan.server_ca_pem, token: runToken };
}
