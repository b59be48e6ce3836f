import type { VerifierMode } from '../wire/plan.ts';
import type { ImageSource } from '../wire/score-record.ts';

/** task.toml as far as this project reads it (spec/05). Times in seconds, sizes in MiB, as in the file. */
export interface TaskConfig {
  track: string;
  verifier: {
    timeoutSec: number;
    env: Readonly<Record<string, string>>;
    mode: VerifierMode;
    /** What mode `artifact` carries over; none stands for the image's WORKDIR. */
    artifactPaths: readonly string[];
  };
  agent: { timeoutSec: number };
  environment: {
    buildTimeoutSec: number;
    dockerImage: string | null;
    cpus: number;
    memoryMb: number;
    storageMb: number;
    gpus: number;
    allowInternet: boolean;
    env: Readonly<Record<string, string>>;
    /** More capabilities from the closed list of spec/03. */
    capAdd: readonly string[];
  };
}

/** A file of a task: relative POSIX path below the task's folder. */
export interface TaskFile {
  path: string;
  bytes: Buffer;
  executable: boolean;
}

/** One task of an opened, digest-checked cache, as the trial needs it. */
export interface CachedTask {
  taskId: string;
  taskDigest: string;
  track: string;
  config: TaskConfig;
  instruction: Buffer;
  image: string;
  imageSource: ImageSource;
  /** What the image was built on: `stand-in` where `evaluator base` made it. */
  imageBase: 'registry' | 'stand-in';
  /** Proof that tests ran, and how many passed tests a reward of 1 needs; null = no proof known. */
  evidence: { kind: 'ctrf' | 'none'; passed: number | null };
  verifierMode: VerifierMode;
  /** What mode `artifact` carries over: absolute paths; none for another mode. */
  artifactPaths: readonly string[];
}

export interface TaskCache {
  directory: string;
  cacheDigest: string;
  /** 64 hex digits; null: tests lie in plain. */
  cacheId: string | null;
  toolchainDigest: string | null;
  /** The digest-checked tar of the verifier toolchain; null when the cache has none. */
  toolchainPath: string | null;
  task(taskId: string): CachedTask;
  taskIds: readonly string[];
  /** Files of environment/artifact/, what an agent is to audit; digest-checked again on each read. */
  audited(taskId: string): Promise<TaskFile[]>;
  /** Files of tests/ of a cache that is not sealed, digest-checked again on each read. */
  tests(taskId: string): Promise<TaskFile[]>;
  /** The same of a sealed cache, opened in memory with the task's key and digest-checked; kept nowhere. */
  unseal(taskId: string, key: Buffer): Promise<TaskFile[]>;
}
