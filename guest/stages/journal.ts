import type { Step } from '../golden/steps.ts';
import type { Counts } from '../inference/counts.ts';
import { createJsonLog, type JsonLog } from '../process/json-log.ts';
import type { PhaseName } from '../trial/phases.ts';
import type { BehaviouralVerdict } from '../wire/score-record.ts';

export type Stage = 'preflight' | 'unlock' | 'run' | 'reduce' | 'emit';

/** A rep's value: a reward on terminal-bench (null: it failed), a verdict or an F2 on the others. */
export type RepFigures = { reward: number | null } | { verdict: BehaviouralVerdict } | { score: number };

/** What a run says of itself while it goes: JSON lines for people and for the command line. */
export type JournalEvent =
  | { event: 'stage'; stage: Stage; mark: 'begin' | 'end' }
  | { event: 'step'; step: Step; mark: 'begin' | 'end' }
  | { event: 'swept'; objects: number }
  | (RepFigures & {
      event: 'rep';
      task_id: string;
      rep: number;
      outcome: string;
      failure: string | null;
      wall_ms: number;
      cpu_ms: number;
      memory_peak_bytes: number;
      overhead_ms: number;
      verifier_ms: number;
      phases: Partial<Record<PhaseName, number>>;
      /** What an unranked rep has used of a model. */
      inference?: Counts;
    })
  | { event: 'delivery'; attempt: number; status: number | null }
  | { event: 'receipt'; receipt: unknown }
  /** Of this process, over its life. */
  | { event: 'ended'; peak_rss_bytes: number }
  | { event: 'error'; code: string; fault: string; stage: Stage | null; message: string };

export type Journal = JsonLog<JournalEvent>;

/** The journal of an evaluation on `fd`. */
export const createJournal = (fd: number): Journal => createJsonLog<JournalEvent>(fd);
