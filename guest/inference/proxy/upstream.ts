import type { ClientRequest, IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { Refusal } from './refusal.ts';
import { MAX_REPLY_BYTES } from './reply.ts';

/** The model's endpoint, and how long it may take. */
export interface Upstream {
  /** https. */
  url: string;
  apiKey: string;
  /** The only issuer that is believed; null: the public ones. */
  caPem: string | null;
  connectMs: number;
  totalMs: number;
}

function refusalOf(status: number): Refusal | null {
  if (status === 200) return null;
  if (status === 429)
    return new Refusal('upstream_rate_limited', "the model's endpoint wants fewer requests");
  if (status >= 300 && status < 400)
    return new Refusal('upstream_reply_refused', "the model's endpoint answered with a redirect");
  return new Refusal('upstream_error', `the model's endpoint answered with status ${status}`);
}

function verifyHead({ statusCode, headers }: IncomingMessage): void {
  const refusal = refusalOf(statusCode ?? 0);
  if (refusal) throw refusal;
  const encoding = headers['content-encoding'];
  // Never decoded: a small body could become a huge one.
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new Refusal('upstream_reply_refused', "the model's endpoint answered with an encoded body");
}

/** Nothing of the agent's request is in it but the body that was made from it. */
function open({ url, apiKey, caPem }: Upstream, body: Buffer): ClientRequest {
  return request(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'content-length': body.length,
      accept: 'application/json',
      'accept-encoding': 'identity',
    },
    ...(caPem === null ? {} : { ca: caPem }),
    minVersion: 'TLSv1.2',
    // Said here, or a variable of the environment could say otherwise.
    rejectUnauthorized: true,
    agent: false,
  });
}

/**
 * One exchange with the model's endpoint: TLS verified, no redirect, no retry, no encoding, every limit kept.
 * @param signal aborted when nobody waits for the answer any more.
 * @param onBytes told of every piece of the answer's body.
 * @returns the body of an answer with status 200.
 * @throws Refusal: upstream_unreachable, upstream_timeout, upstream_rate_limited, upstream_error,
 *   upstream_reply_refused.
 */
export function exchange(
  body: Buffer,
  upstream: Upstream,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const outgoing = open(upstream, body);
  const fail = (refusal: Refusal) => {
    reject(refusal);
    outgoing.destroy();
  };
  const late = (what: string, ms: number) =>
    setTimeout(
      () => fail(new Refusal('upstream_timeout', `the model's endpoint was not ${what} within ${ms} ms`)),
      ms,
    );
  const broken = () => fail(new Refusal('upstream_unreachable', "the model's endpoint cannot be reached"));
  const connecting = late('connected', upstream.connectMs);
  const total = late('done', upstream.totalMs);
  signal.addEventListener('abort', broken, { once: true });
  outgoing.on('socket', (socket) => socket.once('secureConnect', () => clearTimeout(connecting)));
  outgoing.on('error', broken);
  outgoing.on('response', (incoming) => {
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      verifyHead(incoming);
    } catch (error) {
      fail(error as Refusal);
      return;
    }
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      onBytes(chunk.length);
      if (size > MAX_REPLY_BYTES)
        fail(
          new Refusal(
            'upstream_reply_refused',
            `the model's endpoint answered with more than ${MAX_REPLY_BYTES} bytes`,
          ),
        );
    });
    incoming.on('error', broken);
    incoming.on('aborted', broken);
    incoming.on('end', () => resolve(Buffer.concat(chunks)));
  });
  outgoing.end(body);
  return promise.finally(() => {
    clearTimeout(connecting);
    clearTimeout(total);
    signal.removeEventListener('abort', broken);
  });
}
