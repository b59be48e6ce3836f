import type { VmShape } from '../../guest/wire/measurement.ts';
import type { NanoUsd } from './usd.ts';

/** One size of VM that the cloud sells. */
export interface Offer {
  shape: VmShape;
  hourly: NanoUsd;
}

/** What is asked for before anything exists. */
export interface ProvisionRequest {
  /** Of the VM; unique, so that it can be found again whatever the reply was. */
  name: string;
  instanceType: string;
  osImage: string;
  diskGb: number;
  /** The exact app-compose. */
  appCompose: Buffer;
  envNames: readonly string[];
}

/** What the cloud would deploy. */
export interface Provisioned {
  appId: string;
  composeHash: string;
  kmsId: string;
  /** Hex; null when the reply has none. */
  envPublicKey: string | null;
  instanceType: string | null;
}

/** The key that variables are encrypted for, as the KMS signed it: hex. */
export interface SignedEnvKey {
  publicKey: string;
  signature: string;
}

export interface CreateRequest {
  appId: string;
  composeHash: string;
  kmsId: string;
  /** Hex: ephemeral X25519 key, nonce, AES-GCM ciphertext. */
  encryptedEnv: string;
  envNames: readonly string[];
}

/** A VM of the account. */
export interface Vm {
  /** What its routes are called by. */
  id: string;
  name: string;
  appId: string | null;
}

/** What a created VM is said to be. */
export interface Created {
  /** As in `Vm`; null when the reply has none. */
  id: string | null;
  appId: string | null;
  shape: VmShape;
}

export interface VmState {
  status: string;
  bootError: string | null;
}

/**
 * The few calls of the cloud that a deployment needs. All throw cloud_unauthorized, cloud_refused,
 * cloud_rate_limited, cloud_unavailable, cloud_unreachable and cloud_reply_malformed.
 */
export interface Cloud {
  /** Null when the cloud does not sell it. */
  offer(instanceType: string): Promise<Offer | null>;
  provision(request: ProvisionRequest): Promise<Provisioned>;
  envKey(kmsId: string, appId: string): Promise<SignedEnvKey>;
  create(request: CreateRequest): Promise<Created>;
  /** Every VM of the account, over all pages; what cannot be read is an error, never an empty list. */
  list(): Promise<Vm[]>;
  state(id: string): Promise<VmState>;
  /** The public log of the container that runs `imageRef`; null while there is none. */
  log(id: string, imageRef: string): Promise<Buffer | null>;
  /** A VM that is not there counts as deleted. */
  remove(id: string): Promise<void>;
}
