import type { Readable } from 'node:stream';

/** What the engine says of itself and of the machine. */
export interface EngineInfo {
  version: string;
  apiVersion: string;
  runcVersion: string;
  cgroupVersion: 1 | 2;
  cgroupDriver: string;
  cpus: number;
  memoryBytes: number;
  dockerRootDir: string;
}

export interface ImageInfo {
  id: string;
  architecture: string;
  os: string;
  sizeBytes: number;
  workingDir: string;
  env: readonly string[];
  volumes: readonly string[];
  labels: Readonly<Record<string, string>>;
}

/** Everything a container is created with; nothing is bind-mounted, ever (spec/03). */
export interface ContainerSpec {
  name: string;
  image: string;
  command: readonly string[];
  env: readonly string[];
  /** Absolute, or '' for the image's own. */
  workingDir: string;
  labels: Readonly<Record<string, string>>;
  capAdd: readonly string[];
  nanoCpus: number;
  cpuShares: number;
  memoryBytes: number;
  pids: number;
  fileSizeBytes: number;
  /** 'none' or the name of a network of ours. */
  network: string;
  /** `none`: no name is resolved through the engine, which some engines do for closed networks too (CVE-2024-29018). */
  dns: 'engine' | 'none';
  /** Named volume mounted read-only, with NoCopy, at `target`; null for a helper that fills it. */
  toolsVolume: { name: string; target: string; access: 'ro' | 'rw' } | null;
}

export interface ContainerState {
  id: string;
  imageId: string;
  status: 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead';
  running: boolean;
  paused: boolean;
  oomKilled: boolean;
  exitCode: number;
  pid: number;
  startedAt: string;
  restartCount: number;
}

export interface ExecSpec {
  command: readonly string[];
  env: readonly string[];
  /** Absolute, or '' for the container's. */
  workingDir: string;
  user: string;
  /** Ours to write, by `pipeExec`; absent: closed, as an agent's always is (spec/03, 4). */
  stdin?: 'open';
}

/** Bounded capture of one output stream: the first and last bytes, and how many went by. */
export interface Captured {
  head: Buffer;
  tail: Buffer;
  totalBytes: number;
}

export interface RunningExec {
  id: string;
  /** Settles when the stream ends, which proves nothing about the process (spec/03, Engine). */
  output: Promise<{ stdout: Captured; stderr: Captured }>;
  /** Stops reading; stops no process. */
  detach(): void;
}

/** A running exec whose output is handed over as it comes, and whose stdin, if it is open, is ours. */
export interface ExecPipe {
  id: string;
  /** Resolves when the bytes have been given to the engine, or can no longer be. */
  write(bytes: Buffer): Promise<void>;
  /** Reads no more until `resume`: a process that goes on writing is held up. */
  pause(): void;
  resume(): void;
  /** Settles when the stream ends, which proves nothing about the process. Rejects when it is not readable. */
  closed: Promise<void>;
  /** Stops reading and writing; stops no process. */
  detach(): void;
}

export interface PathStat {
  name: string;
  sizeBytes: number;
  /** Go os.FileMode bits. */
  mode: number;
  isRegularFile: boolean;
  isDirectory: boolean;
  linkTarget: string;
}

export interface OwnedObject {
  kind: 'container' | 'volume' | 'network' | 'image';
  id: string;
  labels: Readonly<Record<string, string>>;
}

/**
 * The one door to the VM's container engine. Every call has a deadline of its own and throws
 * EvaluatorError: `engine_unreachable`, `engine_timeout`, `engine_not_found`, `engine_conflict` or
 * `engine_error`. No call retries by itself: the fault rule of spec/02 decides that.
 */
export interface Engine {
  info(): Promise<EngineInfo>;
  image(ref: string): Promise<ImageInfo | null>;
  pull(ref: string): Promise<void>;
  create(spec: ContainerSpec): Promise<string>;
  /** The raw inspect document, for comparing with what was asked. */
  inspectRaw(id: string): Promise<Record<string, unknown>>;
  inspect(id: string): Promise<ContainerState>;
  start(id: string): Promise<void>;
  kill(id: string): Promise<void>;
  /** Forced, with anonymous volumes; an absent container is fine, and one that is being removed. */
  remove(id: string): Promise<void>;
  /** Resolves with the exit code when the container's main process has ended. */
  waitExit(id: string, timeoutMs: number): Promise<number>;
  /** Creates an exec without starting it: may be retried, unlike `startExec` (spec/02). */
  createExec(id: string, spec: ExecSpec): Promise<string>;
  /** Starts it, stdin closed. A failure here may still have started the process. */
  startExec(execId: string): Promise<RunningExec>;
  /** The same, with every piece of output handed to `onOutput`, which must be done with it when it returns. */
  pipeExec(execId: string, onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void): Promise<ExecPipe>;
  execState(execId: string): Promise<{ running: boolean; exitCode: number | null; pid: number }>;
  putArchive(id: string, path: string, tar: Readable | Buffer): Promise<void>;
  getArchive(id: string, path: string): Promise<Readable>;
  /** lstat in the container; null when there is nothing at that path. */
  statPath(id: string, path: string): Promise<PathStat | null>;
  /** Bytes in the writable layer. */
  writableLayerBytes(id: string, timeoutMs: number): Promise<number>;
  createVolume(name: string, labels: Readonly<Record<string, string>>): Promise<void>;
  removeVolume(name: string): Promise<void>;
  /** A bridge with inter-container traffic off. */
  createNetwork(name: string, labels: Readonly<Record<string, string>>): Promise<string>;
  /** A bridge whose members, of `subnet` (CIDR), reach each other alone: not the host, nothing beyond it. */
  createInternalNetwork(
    name: string,
    subnet: string,
    labels: Readonly<Record<string, string>>,
  ): Promise<string>;
  /** Puts a container that has not been started on one more network, under this IPv4 address. */
  connect(network: string, containerId: string, address: string): Promise<void>;
  disconnect(network: string, containerId: string): Promise<void>;
  removeNetwork(id: string): Promise<void>;
  removeImage(id: string): Promise<void>;
  /** Everything that carries this label. */
  listOwned(label: string): Promise<OwnedObject[]>;
}
