import type { Code } from '../../guest/errors.ts';
import type { RunState } from './machine.ts';

/** A run as it is prepared; all times are milliseconds since the epoch. */
export interface NewRun {
  evalRunId: string;
  submissionId: string;
  agentHash: string;
  /** The exact bytes of the signed plan. */
  planBytes: Buffer;
  runTokenSha256: string;
  scoreNonce: string;
  expiresAtMs: number;
}

export interface Run extends NewRun {
  state: RunState;
  /** Why it ended or waits; null while nothing is wrong. */
  reasonCode: Code | null;
  scoreF64be: string | null;
  /** When the guest said that agents start; null before that. */
  startedAtMs: number | null;
}

export interface StoredReceipt {
  evalRunId: string;
  resultSha256: string;
  receivedAtMs: number;
  /** The exact RESULT bytes. */
  resultBytes: Buffer;
}

export interface HistoryEntry {
  from: RunState | null;
  to: RunState;
  reasonCode: Code | null;
  atMs: number;
}

/**
 * What the challenge remembers. Every method is one transaction: a process that dies inside leaves the
 * state before it. The history is append-only.
 */
export interface Ledger {
  prepare(run: NewRun, nowMs: number): void;
  run(evalRunId: string): Run | null;
  runsIn(states: readonly RunState[]): Run[];
  receipt(evalRunId: string): StoredReceipt | null;
  /**
   * Commits a receipt; the same bytes again give the same one.
   * @throws run_unknown; result_conflict when other bytes were received; ledger_transition_refused.
   */
  receive(evalRunId: string, resultBytes: Buffer, nowMs: number): StoredReceipt;
  /** Notes that agents start; the first time counts. @throws run_unknown. */
  markStarted(evalRunId: string, nowMs: number): void;
  /**
   * Consumes the score nonce and writes the score.
   * @throws score_nonce_consumed, ledger_transition_refused, run_unknown; nothing is written then.
   */
  accept(evalRunId: string, scoreF64be: string, nowMs: number): void;
  /** @throws ledger_transition_refused, run_unknown. */
  reject(evalRunId: string, reason: Code, nowMs: number): void;
  /** @throws ledger_transition_refused, run_unknown. */
  park(evalRunId: string, reason: Code, nowMs: number): void;
  /** Closes what waited too long: prepared beyond its plan, parked beyond `parkedForMs`. */
  closeOverdue(nowMs: number, parkedForMs: number): void;
  history(evalRunId: string): HistoryEntry[];
  close(): void;
}
