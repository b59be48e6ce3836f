import { statSync } from 'node:fs';
import pLimit from 'p-limit';
import { EvaluatorError } from '../errors.ts';
import { type AgentCall, callAgent } from './dstack-call.ts';
import {
  type AgentInfo,
  type RawQuote,
  readInfo,
  readQuoteReply,
  readTlsKey,
  readVersion,
  type TlsKey,
} from './dstack-replies.ts';

export type { AgentInfo, RawQuote, TlsKey } from './dstack-replies.ts';

/** Where dstack puts its socket, by release. */
export const GUEST_AGENT_SOCKETS: readonly string[] = [
  '/var/run/dstack.sock',
  '/run/dstack.sock',
  '/var/run/dstack/dstack.sock',
  '/run/dstack/dstack.sock',
];

/** dstack's clients take their endpoint from these: whoever sets one means a simulator to answer for the VM. */
const SIMULATOR_VARIABLES = ['DSTACK_SIMULATOR_ENDPOINT', 'TAPPD_SIMULATOR_ENDPOINT'] as const;
const REPORT_DATA_BYTES = 64;
// What a certificate's names are made of; nothing here needs more.
const ASCII = /^[\x20-\x7e]{0,253}$/;
const MAX_ALT_NAMES = 16;

/** A fresh P-256 key whose certificate carries a quote over it. */
export interface TlsKeyRequest {
  subject: string;
  altNames: readonly string[];
  usages: readonly ('server' | 'client')[];
  /** Unix seconds; null leaves the dates to the agent (all that releases before 0.5.7 can do). */
  validity: { notBefore: number; notAfter: number } | null;
}

/** The part of dstack's guest agent that this project needs. Calls are served one at a time, never repeated. */
export interface GuestAgent {
  /** @throws guest_agent_*. */
  info(): Promise<AgentInfo>;
  /** @param reportData exactly 64 bytes. @throws guest_agent_*. */
  getQuote(reportData: Buffer): Promise<RawQuote>;
  /** @throws guest_agent_*. */
  getTlsKey(request: TlsKeyRequest): Promise<TlsKey>;
}

/**
 * Refuses to run where a variable would redirect the guest agent's client to a simulator.
 * @throws simulator_variable_set.
 */
export function refuseSimulatorVariable(env: Readonly<Record<string, string | undefined>>): void {
  const found = SIMULATOR_VARIABLES.find((name) => env[name] !== undefined);
  if (found === undefined) return;
  throw new EvaluatorError('simulator_variable_set', `environment: ${found} is set; remove it`);
}

function isSocket(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
}

/**
 * The guest agent's socket: the first of the known places that holds one.
 * @throws guest_agent_unreachable.
 */
export function findGuestAgentSocket(candidates: readonly string[] = GUEST_AGENT_SOCKETS): string {
  const found = candidates.find(isSocket);
  if (found !== undefined) return found;
  throw new EvaluatorError(
    'guest_agent_unreachable',
    `guest agent: no socket at ${candidates.join(', ')}; mount dstack's socket into this container`,
  );
}

function refuseRequest(problem: string): never {
  throw new EvaluatorError('guest_agent_request_invalid', `guest agent request: ${problem}`);
}

function checkTlsKeyRequest(request: TlsKeyRequest): void {
  if (request.altNames.length > MAX_ALT_NAMES) refuseRequest(`more than ${MAX_ALT_NAMES} alternative names`);
  for (const name of [request.subject, ...request.altNames]) {
    if (!ASCII.test(name)) refuseRequest('a name is not printable ASCII of at most 253 characters');
  }
  for (const seconds of Object.values(request.validity ?? {})) {
    if (!Number.isSafeInteger(seconds) || seconds < 0) refuseRequest('a date is not in whole Unix seconds');
  }
}

function tlsKeyBody({ subject, altNames, usages, validity }: TlsKeyRequest) {
  return {
    subject,
    usage_ra_tls: true,
    usage_server_auth: usages.includes('server'),
    usage_client_auth: usages.includes('client'),
    ...(altNames.length > 0 ? { alt_names: altNames } : {}),
    ...(validity === null ? {} : { not_before: validity.notBefore, not_after: validity.notAfter }),
  };
}

/**
 * A client of the guest agent behind a Unix socket.
 * @param options socketPath is absolute, without a scheme; deadlineMs limits each call by wall clock.
 * @throws guest_agent_unreachable when there is no socket.
 */
export function connectGuestAgent(options: { socketPath: string; deadlineMs: number }): GuestAgent {
  const { socketPath, deadlineMs } = options;
  // A URL would mean TCP, where anybody may answer.
  if (!socketPath.startsWith('/')) {
    throw new EvaluatorError(
      'guest_agent_unreachable',
      `guest agent: ${JSON.stringify(socketPath)} is not an absolute path; give it without a scheme`,
    );
  }
  findGuestAgentSocket([socketPath]);
  const oneAtATime = pLimit(1);
  const call = (method: AgentCall['method'], body: object) =>
    callAgent({ socketPath, method, body, deadlineMs });

  return {
    info: () => oneAtATime(async () => readInfo(await call('Info', {}))),

    getQuote: (reportData) =>
      oneAtATime(async () => {
        // Shorter data would be padded by the agent.
        if (!Buffer.isBuffer(reportData) || reportData.length !== REPORT_DATA_BYTES) {
          refuseRequest(`report data is not a Buffer of ${REPORT_DATA_BYTES} bytes`);
        }
        return readQuoteReply(await call('GetQuote', { report_data: reportData.toString('hex') }));
      }),

    getTlsKey: (request) =>
      oneAtATime(async () => {
        checkTlsKeyRequest(request);
        // An agent without a version ignores the dates.
        if (request.validity !== null) readVersion(await call('Version', {}));
        return readTlsKey(await call('GetTlsKey', tlsKeyBody(request)));
      }),
  };
}
