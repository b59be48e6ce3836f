import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';

// Also a file of the proxy's program: nothing but Node's own modules may be imported here.

/** Where a model is asked, and within what limits. */
export interface ModelCall {
  /** https, or http on this machine for a stand-in. */
  url: string;
  /** A bearer, never logged. */
  apiKey: string;
  /** The only issuer that is believed; null: the public ones. */
  caPem: string | null;
  connectMs: number;
  totalMs: number;
  maxReplyBytes: number;
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal;
  /** Told of every piece of the answer's body. */
  onBytes(bytes: number): void;
  /** What a failure is thrown as. */
  failed(failure: ModelFailure): Error;
}

export type ModelFailure =
  | { kind: 'unreachable'; cause: NodeJS.ErrnoException | null }
  | { kind: 'late'; what: 'connected' | 'done'; ms: number }
  | { kind: 'status'; status: number }
  | { kind: 'encoded' }
  | { kind: 'too_large'; maxBytes: number }
  | { kind: 'aborted' };

/** Whether a host's name says this machine. */
export function isLoopback(hostname: string): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
}

function open({ url: text, apiKey, caPem }: ModelCall, body: Buffer): ClientRequest {
  const url = new URL(text);
  const options = {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'content-length': body.length,
      accept: 'application/json',
      'accept-encoding': 'identity',
    },
    // A connection of its own, and none of the environment's proxies.
    agent: false as const,
  };
  if (url.protocol === 'http:' && isLoopback(url.hostname)) return httpRequest(url, options);
  const ca = caPem === null ? {} : { ca: caPem };
  // Said here, or a variable of the environment could say otherwise.
  return httpsRequest(url, { ...options, ...ca, minVersion: 'TLSv1.2', rejectUnauthorized: true });
}

function failureOf({ statusCode = 0, headers }: IncomingMessage): ModelFailure | null {
  if (statusCode !== 200) return { kind: 'status', status: statusCode };
  const encoding = headers['content-encoding'];
  // Never decoded: a small body could become a huge one.
  return encoding !== undefined && encoding.toLowerCase() !== 'identity' ? { kind: 'encoded' } : null;
}

/**
 * One exchange with a model's endpoint: TLS verified, no redirect, no proxy, no retry, no encoding, every limit kept.
 * @returns the body of an answer with status 200.
 * @throws what `failed` makes of any other end.
 */
export function exchange(body: Buffer, call: ModelCall): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const { signal, connectMs, totalMs, maxReplyBytes, onBytes } = call;
  const outgoing = open(call, body);
  const fail = (failure: ModelFailure) => {
    reject(call.failed(failure));
    outgoing.destroy();
  };
  const late = (what: 'connected' | 'done', ms: number) =>
    setTimeout(() => fail({ kind: 'late', what, ms }), ms);
  const broken = (cause: Error | null) => fail({ kind: 'unreachable', cause });
  const abort = () => fail({ kind: 'aborted' });
  const connecting = late('connected', connectMs);
  const total = late('done', totalMs);
  signal.addEventListener('abort', abort, { once: true });
  outgoing.on('socket', (socket) => {
    const ready = 'encrypted' in socket ? 'secureConnect' : 'connect';
    socket.once(ready, () => clearTimeout(connecting));
  });
  outgoing.on('error', broken);
  outgoing.on('response', (incoming) => {
    const refused = failureOf(incoming);
    if (refused) {
      fail(refused);
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      onBytes(chunk.length);
      if (size > maxReplyBytes) fail({ kind: 'too_large', maxBytes: maxReplyBytes });
    });
    incoming.on('error', broken);
    incoming.on('aborted', () => broken(null));
    incoming.on('end', () => resolve(Buffer.concat(chunks)));
  });
  outgoing.end(body);
  return promise.finally(() => {
    clearTimeout(connecting);
    clearTimeout(total);
    signal.removeEventListener('abort', abort);
  });
}
