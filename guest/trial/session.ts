import type { Engine, EngineInfo } from '../engine/port.ts';
import type { InferenceOffer } from '../inference/access.ts';
import type { Network, VerifierMode } from '../wire/plan.ts';
import type { ImageSource, Limits } from '../wire/score-record.ts';
import type { Clock } from './clock.ts';
import type { Session } from './labels.ts';

/** What every trial of a run shares. */
export interface TrialContext {
  engine: Engine;
  info: EngineInfo;
  clock: Clock;
  session: Session;
  runId: string;
  toolsVolume: string;
  /** CPU weight of trial containers, below the guest's own (spec/02, mechanism). */
  cpuShares: number;
  maxStartRetries: number;
  /** A path on the file system that holds the engine's data. */
  diskPath: string;
  /** Disk kept free for the guest, in bytes. */
  diskReserveBytes: number;
  /** Bounds how many uploads run at once. */
  uploads: <T>(upload: () => Promise<T>) => Promise<T>;
  counters: { faults: number };
  /** What a rep with `network: inference` reaches; null: nothing is offered. */
  inference: InferenceOffer | null;
  /** Aborted when the run must end: nothing is created or started from then on. */
  signal: AbortSignal;
}

/** One task as its trials need it: sizes in bytes, times in ms. */
export interface TrialTask {
  taskId: string;
  image: { id: string; workdir: string; env: readonly string[]; source: ImageSource };
  instruction: Buffer;
  limits: Limits;
  pids: number;
  capAdd: readonly string[];
  /** A plan's, or the bridge to a rep's model proxy. */
  network: Network | { bridge: string };
  env: Readonly<Record<string, string>>;
  /** What the track places into a rep's container beside the instruction, before the agent starts. */
  files: readonly Upload[];
  verifier: {
    mode: VerifierMode;
    /** What is carried over, of mode `artifact`; none of the others. */
    artifactPaths: readonly string[];
    timeoutMs: number;
    env: Readonly<Record<string, string>>;
  };
}

/** A file to be placed into a stopped container; an empty directory where the path ends in `/`. */
export interface Upload {
  path: string;
  bytes: Buffer;
  executable: boolean;
}

interface AgentParts {
  command: readonly string[];
  /** NAME=value pairs the plan allows, for the agent's exec only. */
  env: readonly string[];
  files: readonly Upload[];
}

/** Runs in the task's container. */
export interface ContainerAgent extends AgentParts {
  kind: 'container';
}

/** Runs in a sandbox container of its own, and reaches the task's container through the broker only. */
export interface BrokeredAgent extends AgentParts {
  kind: 'brokered';
  /** The agent runtime image that the sandbox is made from. */
  runtime: { imageId: string; env: readonly string[] };
}

/** What is run as the agent. */
export type TrialAgent = ContainerAgent | BrokeredAgent;
