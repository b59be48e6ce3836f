import { EvaluatorError } from '../guest/errors.ts';
import { type AcceptancePolicy, type Acceptor, createAcceptor, type Judgement } from './accept.ts';
import { createRoutes } from './http/routes.ts';
import type { SealedCache } from './key-release/exchange.ts';
import { KEY_RELEASE_LIMITS, startKeyReleaseServer } from './key-release/server.ts';
import type { Ledger, Run } from './ledger/ledger.ts';
import { PARKED_FOR_MS } from './ledger/parking.ts';
import { createReviewService, type ReviewOptions, type ReviewService } from './review/serve.ts';
import { SERVER_LIMITS, startServer } from './server.ts';
import type { ServerIdentity } from './tls.ts';
import { startUpkeep } from './upkeep.ts';

/** What a challenge needs to give keys. */
export interface KeyReleaseOptions {
  /** 0: any free one. */
  port: number;
  /** The KMS root: who issues guests' certificates. */
  clientCaPem: string;
  /** By cache digest. */
  caches: ReadonlyMap<string, SealedCache>;
}

export interface ChallengeOptions {
  ledger: Ledger;
  policy: AcceptancePolicy;
  artifact: (run: Run) => Buffer;
  /** Null: no cache here is sealed, and no port is opened. */
  keyRelease: KeyReleaseOptions | null;
  /** Null: nothing is reviewed here. */
  review: Omit<ReviewOptions, 'now' | 'log'> | null;
  identity: ServerIdentity;
  host: string;
  /** 0: any free one. */
  port: number;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** One event a call, for a log of JSON lines; without secrets. */
  log: (event: { event: string; [key: string]: unknown }) => void;
}

export interface Challenge {
  baseUrl: string;
  /** `https://host:port` of key release; null when there is none. */
  keyReleaseUrl: string | null;
  acceptor: Acceptor;
  /** Null when nothing is reviewed here. */
  review: ReviewService | null;
  /** Lets the judgement at hand end, then closes server and ledger. */
  close(): Promise<void>;
}

function judgementEvent(evalRunId: string, outcome: Judgement | Error) {
  if (outcome instanceof Error) {
    return { event: 'verifier_failed', eval_run_id: evalRunId, detail: outcome.message };
  }
  const judged = { event: 'judged', eval_run_id: evalRunId, outcome: outcome.kind };
  if (outcome.kind !== 'accepted') return { ...judged, reason_code: outcome.reason };
  const { ineligibleBecause, cut } = outcome.eligibility;
  const weight = { eligible: ineligibleBecause === null, ineligible_because: ineligibleBecause, cut };
  return { ...judged, reason_code: null, score_f64be: outcome.scoreF64be, ...weight };
}

type Listening = { url: string; close(): Promise<void> };

async function startKeyRelease(options: ChallengeOptions): Promise<Listening | null> {
  const { keyRelease, log, host } = options;
  if (!keyRelease) return null;
  const server = await startKeyReleaseServer({
    ...options,
    ...keyRelease,
    limits: KEY_RELEASE_LIMITS,
    onExchange: ({ exchange, evalRunId, error }) => {
      const failure = error instanceof Error ? { detail: error.message } : {};
      const reason = error instanceof EvaluatorError ? error.code : error === null ? null : 'verifier_failed';
      log({ event: 'key_release', exchange, eval_run_id: evalRunId, reason_code: reason, ...failure });
    },
  });
  return { url: `https://${authorityOf(host)}:${server.port}`, close: server.close };
}

const authorityOf = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/**
 * Serves a relying party on an existing ledger: receives, judges, keeps. What a process before this one had
 * received and not judged is judged first.
 */
export async function startChallenge(options: ChallengeOptions): Promise<Challenge> {
  const { ledger, policy, now, log, host } = options;
  const acceptor = createAcceptor({
    ledger,
    policy,
    now,
    onJudged: (evalRunId, outcome) => log(judgementEvent(evalRunId, outcome)),
  });
  const review = options.review && createReviewService({ ...options.review, now, log });
  const upkeep = (): void => {
    ledger.closeOverdue(now(), PARKED_FOR_MS);
    acceptor.enqueueOpen();
    review?.upkeep();
  };
  ledger.interruptAttempts();
  upkeep();
  const keyRelease = await startKeyRelease(options);
  const evaluation = createRoutes({ ...options, acceptor });
  const server = await startServer({
    ...options,
    route: (request) =>
      review && request.url?.startsWith('/review/') ? review.route(request) : evaluation(request),
    limits: SERVER_LIMITS,
    onDefect: (error) => log({ event: 'defect', detail: error instanceof Error ? error.message : 'unknown' }),
  });
  const endUpkeep = startUpkeep(upkeep, log);
  return {
    baseUrl: `https://${authorityOf(host)}:${server.port}`,
    keyReleaseUrl: keyRelease?.url ?? null,
    acceptor,
    review,
    close: async () => {
      endUpkeep();
      await server.close();
      await keyRelease?.close();
      await acceptor.idle();
      await review?.acceptor.idle();
      ledger.close();
      options.review?.ledger.close();
    },
  };
}
