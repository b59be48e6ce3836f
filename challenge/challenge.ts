import {
  type AcceptancePolicy,
  type Acceptor,
  createAcceptor,
  type Judgement,
  PARKED_FOR_MS,
} from './accept.ts';
import type { Ledger, Run } from './ledger/ledger.ts';
import { SERVER_LIMITS, startServer } from './server.ts';
import type { ServerIdentity } from './tls.ts';

/** How often closed plans are closed in the ledger and parked receipts tried again. */
const UPKEEP_EVERY_MS = 30_000;

export interface ChallengeOptions {
  ledger: Ledger;
  policy: AcceptancePolicy;
  artifact: (run: Run) => Buffer;
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
  acceptor: Acceptor;
  /** Lets the judgement at hand end, then closes server and ledger. */
  close(): Promise<void>;
}

function judgementEvent(evalRunId: string, outcome: Judgement | Error) {
  if (outcome instanceof Error) {
    return { event: 'verifier_failed', eval_run_id: evalRunId, detail: outcome.message };
  }
  const reason = outcome.kind === 'accepted' ? null : outcome.reason;
  return { event: 'judged', eval_run_id: evalRunId, outcome: outcome.kind, reason_code: reason };
}

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
  const upkeep = (): void => {
    ledger.closeOverdue(now(), PARKED_FOR_MS);
    acceptor.enqueueOpen();
  };
  upkeep();
  const server = await startServer({
    ...options,
    acceptor,
    limits: SERVER_LIMITS,
    onDefect: (error) => log({ event: 'defect', detail: error instanceof Error ? error.message : 'unknown' }),
  });
  const timer = setInterval(upkeep, UPKEEP_EVERY_MS);
  const authority = host.includes(':') ? `[${host}]` : host;
  return {
    baseUrl: `https://${authority}:${server.port}`,
    acceptor,
    close: async () => {
      clearInterval(timer);
      await server.close();
      await acceptor.idle();
      ledger.close();
    },
  };
}
