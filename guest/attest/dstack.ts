import { statSync } from 'node:fs';
import { DstackClient } from '@phala/dstack-sdk';
import pLimit from 'p-limit';
import { EvaluatorError } from '../errors.ts';
import { callWithin } from './dstack-call.ts';
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

/** The SDK takes its endpoint from these; a simulator there would answer for the VM. */
const SIMULATOR_VARIABLES = ['DSTACK_SIMULATOR_ENDPOINT', 'TAPPD_SIMULATOR_ENDPOINT'] as const;
const REPORT_DATA_BYTES = 64;
// The SDK counts characters where the length header wants bytes, so anything else arrives cut off.
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

function tlsKeyOptions(request: TlsKeyRequest) {
  return {
    subject: request.subject,
    altNames: [...request.altNames],
    usageRaTls: true,
    usageServerAuth: request.usages.includes('server'),
    usageClientAuth: request.usages.includes('client'),
    ...request.validity,
  };
}

/**
 * A client of the guest agent behind a Unix socket.
 * @param options socketPath is absolute, without a scheme; deadlineMs limits each call by wall clock. The SDK
 * itself gives up after 30 s, so a longer deadline has no effect.
 * @throws guest_agent_unreachable when there is no socket.
 */
export function connectGuestAgent(options: { socketPath: string; deadlineMs: number }): GuestAgent {
  const { socketPath, deadlineMs } = options;
  // Given a URL the SDK would open TCP, and given nothing it would follow the simulator's variable.
  if (!socketPath.startsWith('/')) {
    throw new EvaluatorError(
      'guest_agent_unreachable',
      `guest agent: ${JSON.stringify(socketPath)} is not an absolute path; give it without a scheme`,
    );
  }
  const client = new DstackClient(findGuestAgentSocket([socketPath]));
  const oneAtATime = pLimit(1);
  const call = (method: string, send: () => Promise<unknown>) => callWithin(method, deadlineMs, send);

  return {
    info: () => oneAtATime(async () => readInfo(await call('Info', () => client.info()))),

    getQuote: (reportData) =>
      oneAtATime(async () => {
        // A string would be sent as UTF-8 text, and shorter data would be padded by the agent.
        if (!Buffer.isBuffer(reportData) || reportData.length !== REPORT_DATA_BYTES) {
          refuseRequest(`report data is not a Buffer of ${REPORT_DATA_BYTES} bytes`);
        }
        return readQuoteReply(await call('GetQuote', () => client.getQuote(reportData)));
      }),

    getTlsKey: (request) =>
      oneAtATime(async () => {
        checkTlsKeyRequest(request);
        // The SDK takes an error reply for a version, and an agent without one ignores the dates.
        if (request.validity !== null) readVersion(await call('Version', () => client.version()));
        return readTlsKey(await call('GetTlsKey', () => client.getTlsKey(tlsKeyOptions(request))));
      }),
  };
}
