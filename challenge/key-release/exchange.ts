import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { parseQuote } from '../../guest/attest/quote.ts';
import { type Code, EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import { taskKey } from '../../guest/tasks/task-key.ts';
import { sealKeys } from '../../guest/wire/key-envelope.ts';
import {
  type KeyReply,
  type KeyRequest,
  keyReleaseReportData,
  type ReleasedKeys,
} from '../../guest/wire/key-release.ts';
import { type EvalPlan, parsePlan, planDigest } from '../../guest/wire/plan.ts';
import type { AcceptancePolicy } from '../accept.ts';
import type { Attempt } from '../ledger/grants.ts';
import type { Ledger, Run } from '../ledger/ledger.ts';
import { isOutage } from '../verify/outage.ts';
import { type ClientCertificate, verifyClientCertificate } from './client-certificate.ts';
import { type KeyReleaseVerdict, verifyKeyReleaseEvidence } from './verify.ts';

/** What opens a sealed cache. The golden key never leaves this process. */
export interface SealedCache {
  goldenKey: Buffer;
  /** 64 hex digits. */
  cacheId: string;
}

export interface KeyReleaseDeps {
  ledger: Ledger;
  policy: Pick<AcceptancePolicy, 'allowlist' | 'rootDer' | 'acceptedTcb' | 'collateral'>;
  /** By cache digest. */
  caches: ReadonlyMap<string, SealedCache>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** One complete, authorised request on one connection. */
export interface KeyExchange {
  run: Run;
  request: KeyRequest;
  certificate: ClientCertificate;
  /** Exported from this very connection, hex. */
  tlsExporter: string;
}

/** A plan that keys can be given for, and the cache that they open. */
interface Releasable {
  plan: EvalPlan;
  cache: SealedCache;
}

function requireReleasable({ run, request }: KeyExchange, deps: KeyReleaseDeps): Releasable {
  const plan = parsePlan(run.planBytes);
  const cache = deps.caches.get(plan.cache_digest);
  if (!plan.key_release || !cache) {
    throw new EvaluatorError('key_release_not_planned', 'key request: this run has no sealed cache here');
  }
  if (request.eval_run_id !== run.evalRunId) {
    throw new EvaluatorError('key_request_ids_mismatch', 'key request: eval_run_id is not that of the URL');
  }
  if (request.nonce !== plan.key_release.nonce) {
    throw new EvaluatorError('key_nonce_mismatch', "key request: nonce is not the plan's");
  }
  return { plan, cache };
}

function releasedKeys(grantId: string, { plan, cache }: Releasable): ReleasedKeys {
  const key = (taskDigest: string) => taskKey(cache.goldenKey, cache.cacheId, taskDigest).toString('hex');
  const task_keys = plan.tasks.map(({ task_id, task_digest }) => ({ task_id, key: key(task_digest) }));
  return { schema_version: 1, grant_id: grantId, task_keys };
}

async function verify(
  exchange: KeyExchange,
  plan: EvalPlan,
  certificateQuote: Parameters<typeof verifyKeyReleaseEvidence>[0]['certificateQuote'],
  { policy, now }: KeyReleaseDeps,
): Promise<KeyReleaseVerdict> {
  const { request, certificate, tlsExporter } = exchange;
  const quoteBytes = Buffer.from(request.quote, 'hex');
  return verifyKeyReleaseEvidence({
    ...policy,
    quoteBytes,
    eventLog: request.event_log,
    reportData: keyReleaseReportData({
      evalRunId: plan.eval_run_id,
      nonce: request.nonce,
      planDigest: planDigest(plan),
      spkiDigest: certificate.spkiDigest,
      tlsExporter,
      recipientPublicKey: request.recipient_public_key,
    }),
    certificateQuote,
    collateral: await policy.collateral(quoteBytes),
    nowMs: now(),
  });
}

/** How an attempt without a grant ends in the ledger (spec/04): an outage and an unsigned quote cost nothing. */
function denial(verdict: Extract<KeyReleaseVerdict, { kind: 'failed' }>) {
  const code: Code = verdict.failure.code ?? 'verifier_failed';
  if (isOutage(code)) return { outcome: 'outage', code } as const;
  return { outcome: verdict.signature === 'good' ? 'denied' : 'refused', code } as const;
}

/** Seals first, so that a recipient nobody can encrypt to gets a denial, not a grant. */
function grantAndSeal(
  exchange: KeyExchange,
  attempt: Attempt,
  verdict: Extract<KeyReleaseVerdict, { kind: 'verified' }>,
  releasable: Releasable,
  { ledger, now }: KeyReleaseDeps,
): KeyReply {
  const { plan } = releasable;
  const { request, certificate } = exchange;
  const grantId = randomBytes(16).toString('hex');
  const reply = sealKeys(
    releasedKeys(grantId, releasable),
    request.recipient_public_key,
    { eval_run_id: plan.eval_run_id, nonce: request.nonce, spki: certificate.spkiDigest },
    generateKeyPairSync('x25519').privateKey,
    randomBytes(12),
  );
  const { measurement, claims } = verdict.evidence;
  const facts = {
    grantId,
    measurement,
    appId: claims.appId,
    instanceId: claims.instanceId,
    platform: verdict.platform,
  };
  ledger.grant(attempt.attemptId, facts, plan.max_grants, now());
  return reply;
}

/**
 * Gives a plan's task keys to a guest that proves on this connection what it is, or says why not. Every step
 * of spec/04 after the run token, in its order: certificate, durable attempt, verification, durable grant,
 * and only then the keys.
 * @returns the reply with the keys: the grant is committed.
 * @throws every denial, with its code: what failed before the attempt was committed used nothing up.
 */
export async function releaseKeys(exchange: KeyExchange, deps: KeyReleaseDeps): Promise<KeyReply> {
  const { ledger, now } = deps;
  const { request, certificate, run } = exchange;
  const releasable = requireReleasable(exchange, deps);
  const { plan } = releasable;
  const quote = parseQuote(Buffer.from(request.quote, 'hex'));
  const own = verifyClientCertificate(certificate, plan, quote, request.event_log);
  const asked = { nonce: request.nonce, spkiDigest: certificate.spkiDigest };
  const attempt = ledger.beginAttempt(run.evalRunId, asked, plan.max_grants, now());
  try {
    const certificateQuote = { quote: own, quoteBytes: certificate.evidence.quoteBytes };
    const verdict = await verify(exchange, plan, certificateQuote, deps);
    if (verdict.kind === 'verified') return grantAndSeal(exchange, attempt, verdict, releasable, deps);
    const { outcome, code } = denial(verdict);
    ledger.endAttempt(attempt.attemptId, outcome, code);
    throw new EvaluatorError(code, `${verdict.failure.name}: ${verdict.failure.detail}`);
  } catch (error) {
    settleAttempt(ledger, attempt, error);
    throw error;
  }
}

/** An attempt that ended in an error, and not yet in the ledger, ends there too. */
function settleAttempt(ledger: Ledger, { attemptId, evalRunId }: Attempt, error: unknown): void {
  const stored = ledger.attempts(evalRunId).find((attempt) => attempt.attemptId === attemptId);
  if (stored?.outcome !== 'pending') return;
  const code = isEvaluatorError(error) ? error.code : 'verifier_failed';
  if (code === 'verifier_failed' || isOutage(code)) ledger.endAttempt(attemptId, 'outage', code);
  // A recipient nobody can encrypt to is the guest's doing; else another request was granted meanwhile.
  else ledger.endAttempt(attemptId, code === 'key_envelope_invalid' ? 'denied' : 'refused', code);
}
