import type { Code } from '../../guest/errors.ts';
import type { Measurement } from '../../guest/wire/measurement.ts';

/**
 * What came of one request for keys. `pending`: being verified. `refused`: nothing showed that a TD asked, so
 * nothing is used up. `outage`: this challenge could not judge. `interrupted`: its process ended meanwhile.
 */
export const ATTEMPT_OUTCOMES = ['pending', 'granted', 'denied', 'refused', 'outage', 'interrupted'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];
/** These use up one of the plan's `max_grants` (spec/04). */
export const COUNTED_OUTCOMES = ['granted', 'denied'] as const satisfies readonly AttemptOutcome[];

/** Who asked: known before anything is verified. */
export interface NewAttempt {
  /** The plan's key release nonce. */
  nonce: string;
  /** SHA-256 of the client certificate's SubjectPublicKeyInfo, hex. */
  spkiDigest: string;
}

export interface Attempt extends NewAttempt {
  attemptId: number;
  evalRunId: string;
  /** 1 for the run's first. */
  attempt: number;
  atMs: number;
  outcome: AttemptOutcome;
  reasonCode: Code | null;
}

/** What a verified quote and its log say of the guest that the keys went to. Hex, but for the measurement. */
export interface GrantFacts {
  /** 128 random bits. */
  grantId: string;
  measurement: Measurement;
  appId: string;
  instanceId: string;
  /** SHA-256 of the platform's PPID. */
  platform: string;
}

export interface Grant extends GrantFacts, NewAttempt {
  evalRunId: string;
  attemptId: number;
  grantedAtMs: number;
}

export interface StoredStart {
  evalRunId: string;
  grantId: string;
  receivedAtMs: number;
}

/** The part of the ledger that decides who holds keys. Each method is one transaction. */
export interface GrantLedger {
  /**
   * Commits that somebody asks. Uses nothing up.
   * @throws run_unknown; run_started, run_closed, run_expired; grants_exhausted.
   */
  beginAttempt(evalRunId: string, asked: NewAttempt, maxGrants: number, nowMs: number): Attempt;
  /** Commits why no key was given. @throws ledger_transition_refused when the attempt has ended before. */
  endAttempt(attemptId: number, outcome: 'denied' | 'refused' | 'outage', reason: Code): void;
  /** Ends what a process before this one left undecided: it gave no key and uses nothing up. */
  interruptAttempts(): void;
  /**
   * Commits a grant, before its keys are sent; at most one an attempt. It supersedes the run's older ones.
   * @throws run_started, run_closed, run_expired, grants_exhausted, ledger_transition_refused; nothing is
   *   written then.
   */
  grant(attemptId: number, facts: GrantFacts, maxGrants: number, nowMs: number): Grant;
  /** All of a run, oldest first. */
  attempts(evalRunId: string): Attempt[];
  /** All of a run, oldest first. */
  grants(evalRunId: string): Grant[];
  /**
   * Commits that agents start under this grant; again for the same grant gives the same receipt.
   * @param spkiDigest of the certificate that says so, hex.
   * @throws grant_unknown, grant_certificate_mismatch, grant_superseded, run_expired, run_closed.
   */
  start(evalRunId: string, grantId: string, spkiDigest: string, nowMs: number): StoredStart;
  started(evalRunId: string): StoredStart | null;
}
