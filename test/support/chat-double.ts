import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { serverIdentity } from './key-server.ts';

/** What a chat-completions reply says; members that an API documents, no more than are needed. */
export interface Completion {
  model: string;
  provider?: string;
  choices: unknown[];
  [more: string]: unknown;
}

export const toolCall = (args: unknown, name = 'submit_verdict') => ({
  id: 'call_1',
  type: 'function',
  function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
});

export const choice = (calls: unknown[] | null, content: string | null = null) => ({
  index: 0,
  finish_reason: calls ? 'tool_calls' : 'stop',
  message: { role: 'assistant', content, ...(calls ? { tool_calls: calls } : {}) },
});

export const VERDICT = { verdict: 'allow', reason_codes: [], evidence_paths: [] };

/** A good reply of the model that was asked for. */
export function completion(overrides: Partial<Completion> = {}, args: unknown = VERDICT): Completion {
  return {
    id: 'gen-1',
    object: 'chat.completion',
    created: 1_767_225_600,
    model: 'vendor/model-1',
    provider: 'Vendor',
    choices: [choice([toolCall(args)])],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    ...overrides,
  };
}

export type Behaviour = (response: ServerResponse, request: IncomingMessage) => void;

const json = (response: ServerResponse, status: number, body: unknown, headers = {}) => {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...headers,
  });
  response.end(bytes);
};

/** Replies with `body` as they stand. */
export const replying =
  (body: unknown, status = 200, headers = {}): Behaviour =>
  (response) =>
    json(response, status, body, headers);

const chunked =
  (bytes: number): Behaviour =>
  (response) => {
    response.writeHead(200);
    for (let left = bytes; left > 0; left -= 65_536)
      response.write(Buffer.alloc(Math.min(left, 65_536), 0x20));
    response.end();
  };

const error = (message: string) => ({ error: { code: 0, message } });

/** Everything that an endpoint does wrong before there is a body to read, and the code it ends in. */
export const MISBEHAVIOURS = {
  redirect: [replying({}, 307, { location: 'https://elsewhere.invalid/' }), 'model_redirected'],
  'permanent redirect': [replying({}, 301, { location: '/again' }), 'model_redirected'],
  gzip: [
    (response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync(JSON.stringify(completion())));
    },
    'model_encoding_refused',
  ],
  '401': [replying(error('No auth credentials found'), 401), 'model_unauthorized'],
  '403': [replying(error('Forbidden'), 403), 'model_unauthorized'],
  '429': [replying(error('Rate limited'), 429), 'model_rate_limited'],
  '500': [replying(error('Internal'), 500), 'model_unavailable'],
  '502': [replying(error('Provider down'), 502), 'model_unavailable'],
  '400': [replying(error('Too long'), 400), 'model_status_unexpected'],
  '201': [replying(completion(), 201), 'model_status_unexpected'],
  'a body of 2 MiB': [chunked(2 * 1024 * 1024), 'model_reply_too_large'],
  'a slow head': [() => undefined, 'model_timeout'],
  'a slow body': [
    (response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{');
    },
    'model_timeout',
  ],
  'a body that breaks off': [
    (response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('{');
      setTimeout(() => response.destroy(), 20);
    },
    'model_unreachable',
  ],
  'no reply': [(_, request) => void request.socket.destroy(), 'model_unreachable'],
} as const satisfies Record<string, readonly [Behaviour, string]>;

export interface ChatDouble {
  url: string;
  caPem: string;
  received: { path: string; headers: IncomingMessage['headers']; body: Buffer }[];
  connections: () => number;
}

export interface OpenChatDouble extends ChatDouble {
  close(): Promise<void>;
}

/**
 * An endpoint of the chat-completions API that behaves as it is told, on loopback or another address of this
 * machine.
 */
export async function openChatDouble(
  behaviour: Behaviour,
  options: { scheme?: 'http' | 'https'; host?: string; address?: string } = {},
): Promise<OpenChatDouble> {
  const address = options.address ?? '127.0.0.1';
  const received: ChatDouble['received'] = [];
  const listener: RequestListener = async (request, response) => {
    const body = await buffer(request);
    received.push({ path: request.url ?? '', headers: request.headers, body });
    behaviour(response, request);
  };
  const identity = await serverIdentity(options.host ?? address);
  const scheme = options.scheme ?? 'https';
  const server =
    scheme === 'https'
      ? createTlsServer({ cert: identity.certificatePem, key: identity.keyPem }, listener)
      : createServer(listener);
  let connections = 0;
  server.on('connection', () => connections++);
  server.on('tlsClientError', (_: unknown, socket: { destroy(): void }) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${scheme}://${address}:${port}/api/v1/chat/completions`,
    caPem: identity.caPem,
    received,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The same, gone when the test is. */
export async function startChatDouble(...args: Parameters<typeof openChatDouble>): Promise<ChatDouble> {
  const double = await openChatDouble(...args);
  onTestFinished(() => double.close());
  return double;
}
