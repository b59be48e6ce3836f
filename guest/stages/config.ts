import type { GuestAgent } from '../attest/dstack.ts';
import type { Engine } from '../engine/port.ts';
import type { Clock } from '../trial/clock.ts';
import type { Session } from '../trial/labels.ts';
import type { PlanRoot } from '../wire/plan-signature.ts';
import type { Journal } from './journal.ts';

/** Where the measured image keeps its tasks (spec/05). */
export const CACHE_DIRECTORY = '/opt/agent-challenge/task-cache';

/** What the guest is started with: literals of its measured command line. */
export interface GuestConfig {
  planRoot: PlanRoot;
  cacheDirectory: string;
  mechanismFile: string;
  engineSocket: string;
  /** null: the first of dstack's own places. */
  guestAgentSocket: string | null;
  /** Plain task folders whose solution/ the oracle may see; never in an image, never when ranked. */
  solutionsDirectory: string | null;
  /** Where each rep's logs go; refused when ranked. */
  logsDirectory: string | null;
  /** This process's own container, or null at a desk. */
  orchestratorContainer: string | null;
}

/** What the miner's VM hands in: confidential, but believed only as far as the plan confirms it. */
export interface GuestInputs {
  /** Canonical JSON. */
  planBytes: Buffer;
  runToken: string;
  /** Values of the plan's agent env names. */
  agentEnv: Readonly<Record<string, string>>;
}

/** The effects a run needs, injected at the top. */
export interface Host {
  config: GuestConfig;
  inputs: GuestInputs;
  engine: Engine;
  session: Session;
  connectAgent: () => GuestAgent;
  clock: Clock;
  /** Wall clock, ms since the epoch. */
  nowMs: () => number;
  journal: Journal;
  /** Writes one line to stdout. */
  print: (line: string) => void;
  signal: AbortSignal;
}
