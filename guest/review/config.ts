import type { GuestAgent } from '../attest/dstack.ts';
import type { JsonLog } from '../process/json-log.ts';
import type { PlanRoot } from '../wire/plan-signature.ts';
import type { Step } from './steps.ts';

/** Where the model is asked. */
export interface ModelEndpoint {
  url: string;
  /** The only issuer that is believed; null: the public ones. */
  caPem: string | null;
  /** The miner's own key: a bearer, never logged. */
  apiKey: string;
}

/** What the miner's VM hands in: confidential, believed only as far as the assignment confirms it. */
export interface ReviewInputs {
  assignmentId: string;
  /** A bearer, never logged. */
  token: string;
  /** Must be the assignment's api_base_url. */
  apiBaseUrl: string;
  /** Must be the assignment's server_ca_pem; null: the assignment is fetched under the public issuers. */
  serverCaPem: string | null;
}

/** What a review says of itself while it goes. */
export type ReviewEvent =
  | { event: 'step'; step: Step; mark: 'begin' | 'end' }
  | { event: 'findings'; findings: number; codes: readonly string[] }
  | { event: 'model'; outcome: string }
  | { event: 'verdict'; verdict: string; reason_codes: readonly string[] }
  | { event: 'delivery'; what: 'report' | 'failure'; attempt: number; status: number | null }
  | { event: 'receipt'; receipt: unknown }
  | { event: 'ended'; peak_rss_bytes: number }
  | { event: 'error'; step: Step | null; code: string; fault: string; message: string };

/** How long an exchange with the model may take, in ms. */
export interface ModelLimits {
  connectMs: number;
  totalMs: number;
}

/** The effects a review needs, injected at the top. */
export interface ReviewHost {
  planRoot: PlanRoot;
  inputs: ReviewInputs;
  /** null: a local review that asks no model, and can therefore not allow. */
  model: ModelEndpoint | null;
  modelLimits: ModelLimits;
  connectAgent: () => GuestAgent;
  /** Wall clock, ms since the epoch. */
  nowMs: () => number;
  sleep: (ms: number) => Promise<void>;
  /** Fresh random bytes, hex. */
  randomHex: (bytes: number) => string;
  journal: JsonLog<ReviewEvent>;
  signal: AbortSignal;
  /** How far the review came: each set once, by the step that comes to know it. */
  progress: {
    /** The only issuer that is believed from then on. */
    serverCaPem: string | null;
    plannedRequestSha256: string | null;
  };
}
