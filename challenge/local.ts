import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { trackKind } from '../guest/consensus/track-kind.ts';
import { EvaluatorError } from '../guest/errors.ts';
import { encodeCanonical } from '../guest/wire/canonical.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import { type PinnedMechanism, parseMechanism } from '../guest/wire/mechanism.ts';
import { parsePlan } from '../guest/wire/plan.ts';
import type { CollateralSource } from './accept.ts';
import {
  type Challenge,
  type ChallengeOptions,
  type KeyReleaseOptions,
  startChallenge,
} from './challenge.ts';
import type { ChallengeConfig } from './config.ts';
import { readGoldenKey } from './golden-key.ts';
import { type Issuer, planRootOf } from './issue-plan.ts';
import { type LabelStore, NO_LABELS, readLabels } from './labels.ts';
import type { Ledger, Run } from './ledger/ledger.ts';
import { isAwaiting, OPEN } from './ledger/machine.ts';
import { loadIdentity, loadIssuer, readInput } from './local-state.ts';
import { prepareRun } from './prepare.ts';
import { trustedFileReview } from './review/trusted-file.ts';
import { NO_REVIEWS, type ReviewStore, UNREVIEWED } from './reviews.ts';
import { writeSecret } from './secrets.ts';
import type { ServerIdentity } from './tls.ts';
import { parseRoot } from './verify/root.ts';

/** The one submitter of a local challenge. */
const LOCAL_HOTKEY = 'local';

/** The effects that a local challenge is given. */
export type LocalDeps = Pick<ChallengeOptions, 'now' | 'log'> & {
  collateral: CollateralSource;
  openLedger: (path: string) => Ledger;
};

export interface LocalChallenge extends Challenge {
  evalRunId: string;
}

const tokenPath = (config: ChallengeConfig, evalRunId: string): string =>
  join(config.state_dir, `run-token-${evalRunId}`);

/** The open run that an earlier process prepared for this agent, whose token is there to be told. */
function openRun(ledger: Ledger, config: ChallengeConfig, agentHash: string, nowMs: number): Run | undefined {
  const open = ledger
    .runsIn(OPEN)
    .filter((run) => !isAwaiting(run.state) || nowMs < run.expiresAtMs)
    .filter((run) => existsSync(tokenPath(config, run.evalRunId)))
    .find((run) => run.agentHash === agentHash);
  return open && (ledger.run(open.evalRunId) ?? undefined);
}

/** A resumed run's plan names its ports; a new one takes the configuration's. */
function portsOf(
  config: ChallengeConfig,
  resumed: Run | undefined,
): { port: number; keyReleasePort: number } {
  if (!resumed) return { port: config.port, keyReleasePort: config.key_release_port };
  const plan = parsePlan(resumed.planBytes);
  const portIn = (url: string) => Number(new URL(url).port);
  return {
    port: portIn(plan.result.url),
    keyReleasePort: plan.key_release ? portIn(plan.key_release.url) : config.key_release_port,
  };
}

/** Null without a sealed cache: then neither key nor client root is named. */
function keyReleaseOf(config: ChallengeConfig, port: number): KeyReleaseOptions | null {
  const { golden_key_path: keyPath, client_ca_pem: clientCaPem, cache } = config;
  if (keyPath === null || clientCaPem === null || cache.cache_id === null) return null;
  const sealed = { goldenKey: readGoldenKey(keyPath), cacheId: cache.cache_id };
  return { port, clientCaPem, caches: new Map([[cache.cache_digest, sealed]]) };
}

function writeOutputs(config: ChallengeConfig, issuer: Issuer, planBytes: Buffer, runToken: string): void {
  mkdirSync(config.out_dir, { recursive: true });
  const root = planRootOf(issuer);
  const files = {
    'plan.json': planBytes,
    'plan-root.json': encodeCanonical({ public_key: root.publicKey, challenge_id: root.challengeId }),
    'allowlist.json': encodeCanonical(config.allowlist),
    'root.pem': config.tdx_root_pem,
    'collateral.json': JSON.stringify(config.collateral),
  };
  for (const [name, data] of Object.entries(files)) writeFileSync(join(config.out_dir, name), data);
  writeSecret(join(config.out_dir, 'run-token'), runToken);
}

/** What admits a ranked run here. */
function reviewsOf({ reviews }: ChallengeConfig): ReviewStore {
  if (reviews.kind === 'none') return NO_REVIEWS;
  if (reviews.kind === 'unreviewed') return UNREVIEWED;
  return trustedFileReview(reviews.path, reviews.trust);
}

/** @throws usage when a behavioural track has no labels, or another track has; cache_*, sealed_*, ground_truth_invalid. */
async function labelsOf({
  track,
  labels_cache_path: directory,
  cache,
  ...config
}: ChallengeConfig): Promise<LabelStore> {
  const isNeeded = trackKind(track) === 'behavioural';
  if (isNeeded !== (directory !== null)) {
    const why = isNeeded ? 'must name the baked cache, which has the labels' : 'must be null on this track';
    throw new EvaluatorError('usage', `config: labels_cache_path: ${why}`);
  }
  if (directory === null) return NO_LABELS;
  const goldenKey = config.golden_key_path === null ? null : readGoldenKey(config.golden_key_path);
  return readLabels(directory, cache.cache_digest, track, goldenKey);
}

interface Preparation {
  agentZip: Buffer;
  mechanism: PinnedMechanism;
  identity: ServerIdentity;
  issuer: Issuer;
  ledger: Ledger;
  reviews: ReviewStore;
  labels: LabelStore;
  challenge: Challenge;
  nowMs: number;
}

async function prepare(
  config: ChallengeConfig,
  preparation: Preparation,
): Promise<Pick<Run, 'evalRunId' | 'planBytes'>> {
  const { agentZip, mechanism, identity, challenge, nowMs } = preparation;
  const { plan, planBytes } = await prepareRun(
    {
      submissionId: `local-${sha256Hex(agentZip).slice(0, 16)}`,
      hotkey: LOCAL_HOTKEY,
      agentZip,
      agentEnv: config.agent_env,
      agentRuntimeImage: config.agent_runtime_image,
      cache: config.cache,
      n: config.select.n,
      terms: {
        ranked: config.ranked,
        track: config.track,
        policy: config.policy,
        r: config.r,
        n_concurrent: config.n_concurrent,
        eval_app: config.eval_app,
      },
      mechanism,
      ttlMs: config.plan_ttl_ms,
      admission: config.reviews.kind === 'file' ? 'reviewed' : 'open',
    },
    { baseUrl: challenge.baseUrl, keyReleaseUrl: challenge.keyReleaseUrl, caPem: identity.caPem },
    { ...preparation, keepToken: (evalRunId, token) => writeSecret(tokenPath(config, evalRunId), token) },
    nowMs,
  );
  return { evalRunId: plan.eval_run_id, planBytes };
}

/**
 * Starts a challenge for one agent on this machine: keys and ledger in `state_dir`, one run prepared (or the
 * open one of an earlier process resumed), everything that `verify` needs written to `out_dir`.
 * @throws usage naming the field, mechanism_invalid, selection_impossible, plan_inconsistent, ...
 */
export async function startLocalChallenge(
  config: ChallengeConfig,
  { now, log, collateral, openLedger }: LocalDeps,
): Promise<LocalChallenge> {
  const agentZip = readInput(config.agent_zip_path, 'agent_zip_path');
  const mechanismBytes = readInput(config.mechanism_path, 'mechanism_path');
  const mechanism = parseMechanism(mechanismBytes);
  const rootDer = parseRoot(config.tdx_root_pem);
  const issuer = await loadIssuer(config.state_dir);
  const reviews = reviewsOf(config);
  const labels = await labelsOf(config);
  const ledger = openLedger(join(config.state_dir, 'ledger.sqlite'));
  const agentHash = sha256Hex(agentZip);
  const resumed = openRun(ledger, config, agentHash, now());
  // A resumed run's guest believes the CA of its plan, and no newer one.
  const untilMs = now() + (resumed ? 0 : config.plan_ttl_ms);
  const identity = await loadIdentity(config, now(), untilMs);
  const { port, keyReleasePort } = portsOf(config, resumed);
  const challenge = await startChallenge({
    ledger,
    policy: {
      planRoot: planRootOf(issuer),
      mechanismBytes,
      allowlist: config.allowlist,
      rootDer,
      acceptedTcb: new Set(config.accepted_tcb),
      collateral,
      reviews,
      labels,
    },
    keyRelease: keyReleaseOf(config, keyReleasePort),
    review: null,
    artifact: (run) => {
      if (run.agentHash === agentHash) return agentZip;
      throw new EvaluatorError('run_closed', 'run: its agent is no longer served here');
    },
    identity,
    host: config.host,
    port,
    now,
    log,
  });
  try {
    const run =
      resumed ??
      (await prepare(config, {
        agentZip,
        mechanism,
        identity,
        issuer,
        ledger,
        reviews,
        labels,
        challenge,
        nowMs: now(),
      }));
    const runToken = readInput(tokenPath(config, run.evalRunId), 'state_dir').toString('ascii');
    writeOutputs(config, issuer, run.planBytes, runToken);
    return { ...challenge, evalRunId: run.evalRunId };
  } catch (error) {
    await challenge.close();
    throw error;
  }
}
