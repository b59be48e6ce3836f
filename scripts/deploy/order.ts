import type { Composed } from '../../compose/parse.ts';
import type { Awaited } from './awaited.ts';
import type { NanoUsd } from './usd.ts';

/** A deployment that was checked here and may be made. */
export interface Order {
  composed: Composed;
  /** The exact bytes that are deployed. */
  appCompose: Buffer;
  composeHash: string;
  /** Names of the encrypted variables, as the compose has them. */
  envNames: readonly string[];
  /** Of the VM: made for this deployment, so that no other VM has it. */
  name: string;
  instanceType: string;
  osImage: string;
  diskGb: number;
  /** The KMS's key, compressed secp256k1 in hex: what signs keys for variables. */
  kmsSigner: string;
  /** The most that an hour may cost. */
  maxHourly: NanoUsd;
  /** From creation to the challenge's word, in ms. */
  timeoutMs: number;
  /** Secrets. */
  values: Readonly<Record<string, string>>;
  awaited: Awaited;
}

/** Time, injected. `sleep` ends early when the signal is given, without an error. */
export interface Clock {
  nowMs(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}
