import type { Code } from '../../guest/errors.ts';
import type { GrantLedger } from './grants.ts';
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
  /** Of the key release; null when the cache is not sealed. */
  keyNonce: string | null;
  expiresAtMs: number;
}

export interface Run extends NewRun {
  state: RunState;
  /** Why it ended or waits; null while nothing is wrong. */
  reasonCode: Code | null;
  scoreF64be: string | null;
}

/** What is told of many runs at once: all but the plan, which is large. */
export type RunSummary = Omit<Run, 'planBytes'>;

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
  /** An operator's own words; null where a code says it all. */
  note: string | null;
  atMs: number;
}

/**
 * What the challenge remembers. Every method is one transaction: a process that dies inside leaves the
 * state before it. The history is append-only.
 */
export interface Ledger extends GrantLedger {
  /**
   * Commits a run. Of a sealed cache an agent has one run that counts (spec/07).
   * @throws agent_run_open, agent_already_scored, agent_no_result while an earlier run of this agent stands.
   */
  prepare(run: NewRun, nowMs: number): void;
  run(evalRunId: string): Run | null;
  /** Oldest first; reads no plan. */
  runsIn(states: readonly RunState[]): RunSummary[];
  /** How many runs are in one of these states; reads none of them. */
  countIn(states: readonly RunState[]): number;
  receipt(evalRunId: string): StoredReceipt | null;
  /**
   * Commits a receipt; the same bytes again give the same one.
   * @throws run_unknown; result_conflict when other bytes were received; ledger_transition_refused.
   */
  receive(evalRunId: string, resultBytes: Buffer, nowMs: number): StoredReceipt;
  /**
   * Consumes the score nonce and writes the score.
   * @throws score_nonce_consumed, ledger_transition_refused, run_unknown; nothing is written then.
   */
  accept(evalRunId: string, scoreF64be: string, nowMs: number): void;
  /** @throws ledger_transition_refused, run_unknown. */
  reject(evalRunId: string, reason: Code, nowMs: number): void;
  /** @throws ledger_transition_refused, run_unknown. */
  park(evalRunId: string, reason: Code, nowMs: number): void;
  /** Closes what waited too long: awaited beyond its plan, parked beyond `parkedForMs`. */
  closeOverdue(nowMs: number, parkedForMs: number): void;
  /**
   * An operator sets a run's outcome aside; it stays in the history, and its agent may be run again.
   * @param reason 1 to 500 printable ASCII characters.
   * @throws reopen_reason_invalid, ledger_transition_refused, run_unknown.
   */
  reopen(evalRunId: string, reason: string, nowMs: number): void;
  history(evalRunId: string): HistoryEntry[];
  close(): void;
}
