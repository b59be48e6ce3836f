import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Code, EvaluatorError } from '../errors.ts';
import { MAX_MODEL_REPLY_BYTES } from '../wire/model-reply.ts';
import type { ModelEndpoint, ModelLimits, ReviewHost } from './config.ts';
import type { PlannedRequest } from './request.ts';

/** Spec/09: connect 10 s, total 300 s. */
export const MODEL_LIMITS: ModelLimits = { connectMs: 10_000, totalMs: 300_000 };

function codeOfStatus(status: number): Code | null {
  if (status === 200) return null;
  if (status >= 300 && status < 400) return 'model_redirected';
  if (status === 401 || status === 403) return 'model_unauthorized';
  if (status === 429) return 'model_rate_limited';
  return status >= 500 ? 'model_unavailable' : 'model_status_unexpected';
}

function verifyHead(incoming: IncomingMessage): void {
  const status = incoming.statusCode ?? 0;
  const code = codeOfStatus(status);
  if (code !== null) throw new EvaluatorError(code, `model: status ${status}`);
  const encoding = incoming.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new EvaluatorError('model_encoding_refused', 'model: the reply is encoded; identity was asked for');
}

function open(endpoint: ModelEndpoint, body: Buffer): ClientRequest {
  const url = new URL(endpoint.url);
  const options = {
    method: 'POST',
    headers: {
      authorization: `Bearer ${endpoint.apiKey}`,
      'content-type': 'application/json',
      'content-length': body.length,
      accept: 'application/json',
      'accept-encoding': 'identity',
    },
    // A connection of its own, and none of the environment's proxies.
    agent: false as const,
  };
  // Plain HTTP only reaches a stand-in on this machine: see `parseModelUrl`.
  if (url.protocol === 'http:') return httpRequest(url, options);
  const ca = endpoint.caPem === null ? {} : { ca: endpoint.caPem };
  return httpsRequest(url, { ...options, ...ca, minVersion: 'TLSv1.2', rejectUnauthorized: true });
}

/**
 * One exchange with the model: no redirect, no proxy, no retry, no encoding, TLS verified, every limit kept.
 * @returns the body of a reply with status 200.
 * @throws model_unreachable, model_timeout, model_redirected, model_unauthorized, model_rate_limited,
 *   model_unavailable, model_status_unexpected, model_encoding_refused, model_reply_too_large.
 */
export function exchange(
  body: Buffer,
  endpoint: ModelEndpoint,
  limits: ModelLimits,
  signal: AbortSignal,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const outgoing = open(endpoint, body);
  const fail = (error: EvaluatorError) => {
    reject(error);
    outgoing.destroy();
  };
  const late = (what: string, ms: number) =>
    setTimeout(() => fail(new EvaluatorError('model_timeout', `model: ${what} not within ${ms} ms`)), ms);
  const connecting = late('connected', limits.connectMs);
  const total = late('answered', limits.totalMs);
  const abort = () => fail(new EvaluatorError('review_aborted', 'model: the review was ended'));
  signal.addEventListener('abort', abort, { once: true });
  outgoing.on('socket', (socket) => {
    const ready = 'encrypted' in socket ? 'secureConnect' : 'connect';
    socket.once(ready, () => clearTimeout(connecting));
  });
  const broken = (cause: Error) =>
    fail(
      new EvaluatorError(
        'model_unreachable',
        `model: ${(cause as NodeJS.ErrnoException).code ?? 'broken off'}`,
        { cause },
      ),
    );
  outgoing.on('error', broken);
  outgoing.on('response', (incoming) => {
    const chunks: Buffer[] = [];
    let size = 0;
    try {
      verifyHead(incoming);
    } catch (error) {
      fail(error as EvaluatorError);
      return;
    }
    incoming.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > MAX_MODEL_REPLY_BYTES)
        fail(new EvaluatorError('model_reply_too_large', `model: more than ${MAX_MODEL_REPLY_BYTES} bytes`));
    });
    incoming.on('error', broken);
    incoming.on('end', () => resolve(Buffer.concat(chunks)));
  });
  outgoing.end(body);
  return promise.finally(() => {
    clearTimeout(connecting);
    clearTimeout(total);
    signal.removeEventListener('abort', abort);
  });
}

/** Step 6: the one exchange; null when this is a local review without a model. */
export async function askModel({ bytes }: PlannedRequest, host: ReviewHost): Promise<Buffer | null> {
  if (host.model === null) return null;
  return exchange(bytes, host.model, host.modelLimits, host.signal);
}

/**
 * The URL of an endpoint: https, or http on this machine for a stand-in.
 * @throws usage.
 */
export function parseModelUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLoopback =
    url?.hostname === '127.0.0.1' || url?.hostname === 'localhost' || url?.hostname === '[::1]';
  if (url && !url.username && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback)))
    return url.href;
  throw new EvaluatorError('usage', '--model-endpoint must be an https:// URL, or http:// on this machine');
}
