import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { EvaluatorError } from '../guest/errors.ts';
import { type AgentCall, type AgentOptions, createAgentCalls } from './agent-calls.ts';
import { AGENT_METHODS, type AgentMethod, type Fault } from './faults.ts';
import type { Platform } from './platform.ts';
import type { CertForm } from './ra-tls.ts';

/** 64 KiB: the largest request, GetTlsKey with its names, is below 10 KiB. */
const MAX_BODY_BYTES = 64 * 1024;
/** sun_path holds 108 bytes with the final zero. */
const MAX_SOCKET_PATH_BYTES = 107;

export interface GuestAgentOptions {
  socketPath: string;
  platform: Platform;
  faults: readonly Fault[];
  /** How RA-TLS certificates carry their quote; `versioned` as dstack 0.5.9 does, unless asked otherwise. */
  certForm?: CertForm;
  /** Milliseconds since the epoch; by default the time of day. */
  clock?: () => number;
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error(`Request body is larger than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return size === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
}

function reply(response: ServerResponse, status: 200 | 400, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body));
  // The SDK's own HTTP reader knows no chunked encoding: without a Content-Length it reads nothing.
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': bytes.length });
  response.end(bytes);
}

function findCall(request: IncomingMessage, calls: Record<AgentMethod, AgentCall>): AgentMethod {
  const name = AGENT_METHODS.find((method) => request.url === `/${method}`);
  if (request.method === 'POST' && name && calls[name]) return name;
  throw new Error(`Service not found: ${request.method} ${request.url}`);
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  calls: Record<AgentMethod, AgentCall>,
  hung: ReadonlySet<AgentMethod>,
): Promise<void> {
  try {
    const method = findCall(request, calls);
    const body = await readBody(request);
    if (hung.has(method)) return;
    reply(response, 200, await calls[method](body));
  } catch (error) {
    // What is left of a refused body would be read as the next request.
    response.setHeader('Connection', 'close');
    reply(response, 400, { error: error instanceof Error ? error.message : String(error) });
  }
}

function usage(socketPath: string, problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('usage', `socket ${socketPath}: ${problem}`, { cause });
}

/** True when someone accepts connections there. */
function isAnswered(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socketPath, () => {
      probe.destroy();
      resolve(true);
    });
    probe.on('error', () => resolve(false));
  });
}

/** Takes away what a killed simulator left behind, and nothing else. */
async function removeStaleSocket(socketPath: string): Promise<void> {
  const found = lstatSync(socketPath, { throwIfNoEntry: false });
  if (!found) return;
  if (!found.isSocket()) throw usage(socketPath, 'there is a file that is no socket; choose another path');
  if (await isAnswered(socketPath)) throw usage(socketPath, 'someone listens there already');
  unlinkSync(socketPath);
}

function listen(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        usage(socketPath, `cannot listen (${cause.code}); does its folder exist, and is it writable?`, cause),
      ),
    );
    server.listen(socketPath, () => {
      chmodSync(socketPath, 0o600);
      resolve();
    });
  });
}

/**
 * Serves dstack's guest agent API on a unix socket (mode 0600), for the unmodified npm SDK.
 * @returns a handle whose `close` ends every connection and removes the socket.
 * @throws usage when the path is too long, taken or not writable.
 */
export async function startGuestAgent(options: GuestAgentOptions): Promise<{ close(): Promise<void> }> {
  const { socketPath, platform, faults } = options;
  if (Buffer.byteLength(socketPath) > MAX_SOCKET_PATH_BYTES) {
    throw usage(socketPath, `longer than ${MAX_SOCKET_PATH_BYTES} bytes`);
  }
  const agent: AgentOptions = {
    platform,
    faults,
    certForm: options.certForm ?? 'versioned',
    clock: options.clock ?? Date.now,
  };
  const calls = await createAgentCalls(agent);
  const hung = new Set(faults.flatMap((fault) => (fault.name === 'hung-call' ? [fault.method] : [])));
  const server = createServer((request, response) => void serve(request, response, calls, hung));
  await removeStaleSocket(socketPath);
  await listen(server, socketPath);
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
