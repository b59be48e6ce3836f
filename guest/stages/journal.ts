import type { Step } from '../golden/steps.ts';
import { createJsonLog, type JsonLog } from '../process/json-log.ts';
import type { PhaseName } from '../trial/phases.ts';

export type Stage = 'preflight' | 'unlock' | 'run' | 'reduce' | 'emit';

/** What a run says of itself while it goes: JSON lines for people and for the command line. */
export type JournalEvent =
  | { event: 'stage'; stage: Stage; mark: 'begin' | 'end' }
  | { event: 'step'; step: Step; mark: 'begin' | 'end' }
  | { event: 'swept'; objects: number }
  | {
      event: 'rep';
      task_id: string;
      rep: number;
      outcome: string;
      failure: string | null;
      reward: number | null;
      wall_ms: number;
      cpu_ms: number;
      memory_peak_bytes: number;
      overhead_ms: number;
      verifier_ms: number;
      phases: Partial<Record<PhaseName, number>>;
    }
  | { event: 'delivery'; attempt: number; status: number | null }
  | { event: 'receipt'; receipt: unknown }
  /** Of this process, over its life. */
  | { event: 'ended'; peak_rss_bytes: number }
  | { event: 'error'; code: string; fault: string; stage: Stage | null; message: string };

export type Journal = JsonLog<JournalEvent>;

/** The journal of an evaluation on `fd`. */
export const createJournal = (fd: number): Journal => createJsonLog<JournalEvent>(fd);
