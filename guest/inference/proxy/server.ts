import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Meter } from './meter.ts';
import { REFUSALS, Refusal, refusalBody } from './refusal.ts';
import { readChatReply } from './reply.ts';
import { MAX_REQUEST_BYTES, type Offer, readChatRequest } from './request.ts';
import { exchange, type Upstream } from './upstream.ts';

export const CHAT_PATH = '/v1/chat/completions';

/** What serves one rep. Times in ms. */
export interface ModelProxy {
  /** The only word that the agent has to say to be served; it opens nothing elsewhere. */
  bearer: string;
  offer: Offer;
  upstream: Upstream;
  meter: Meter;
  /** How long a request may take to come in. */
  receiveMs: number;
  nowMs: () => number;
}

const digestOf = (word: string) => createHash('sha256').update(word).digest();

function verifyHead({ method, url, headers }: IncomingMessage, bearer: string): void {
  if (!timingSafeEqual(digestOf(headers.authorization ?? ''), digestOf(`Bearer ${bearer}`)))
    throw new Refusal('unauthorized', 'the key must be that of OPENAI_API_KEY');
  if (url !== CHAT_PATH) throw new Refusal('route_unknown', `only ${CHAT_PATH} is served`);
  if (method !== 'POST') throw new Refusal('method_not_allowed', `${CHAT_PATH} takes POST`);
  if (headers['content-encoding'] !== undefined)
    throw new Refusal('request_malformed', 'the body must not be encoded');
  if (Number(headers['content-length'] ?? 0) > MAX_REQUEST_BYTES) throw tooLarge();
}

function tooLarge(): Refusal {
  return new Refusal('request_too_large', `at most ${MAX_REQUEST_BYTES} bytes are taken`);
}

/** The body's pieces, as far as they are taken; what is left of it does not keep the answer from being sent. */
async function* pieces(request: IncomingMessage): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_REQUEST_BYTES) throw tooLarge();
    yield chunk;
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of pieces(request)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A client that is still sending would not read the answer. */
async function drain(request: IncomingMessage): Promise<void> {
  try {
    for await (const _ of pieces(request));
  } catch {
    // It is told what was wrong in any case.
  }
}

async function complete(proxy: ModelProxy, request: IncomingMessage, gone: AbortSignal): Promise<Buffer> {
  const { meter } = proxy;
  const asked = readChatRequest(await readBody(request), proxy.offer);
  gone.throwIfAborted();
  const nth = meter.send(asked.bytes.length);
  const answered = await exchange(asked.bytes, proxy.upstream, gone, (bytes) => meter.received(bytes));
  const reply = readChatReply(answered, asked.model, nth, proxy.nowMs());
  meter.used(reply.usage);
  return reply.bytes;
}

function send(response: ServerResponse, status: number, body: Buffer): void {
  // A connection serves one request: what a client puts behind it is never read.
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  });
  response.end(body);
}

async function answer(proxy: ModelProxy, request: IncomingMessage, gone: AbortSignal): Promise<Buffer> {
  verifyHead(request, proxy.bearer);
  const leave = proxy.meter.enter();
  try {
    return await complete(proxy, request, gone);
  } finally {
    leave();
  }
}

async function serve(proxy: ModelProxy, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    send(response, 200, await answer(proxy, request, gone.signal));
  } catch (error) {
    if (gone.signal.aborted) return;
    const refusal =
      error instanceof Refusal ? error : new Refusal('request_malformed', 'the request broke off');
    proxy.meter.refused();
    if (refusal.code !== 'request_too_large') await drain(request);
    send(response, REFUSALS[refusal.code], refusalBody(refusal));
  }
}

/** A server for one agent: few connections, one request each, small heads, no waiting. */
export function createProxyServer(proxy: ModelProxy): Server {
  const server = createServer(
    {
      maxHeaderSize: 16 * 1024,
      headersTimeout: Math.min(10_000, proxy.receiveMs),
      requestTimeout: proxy.receiveMs,
      connectionsCheckingInterval: Math.min(1000, proxy.receiveMs),
      keepAliveTimeout: 1000,
      requireHostHeader: true,
      insecureHTTPParser: false,
    },
    (request, response) => void serve(proxy, request, response),
  );
  server.maxConnections = 16;
  server.maxHeadersCount = 64;
  server.maxRequestsPerSocket = 1;
  return server;
}
