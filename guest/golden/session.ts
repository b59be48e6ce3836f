import { request } from 'node:http';
import { isIP } from 'node:net';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { EXPORTER } from '../wire/key-release.ts';
import type { ClientIdentity } from './ra-tls.ts';
import type { Step, Steps } from './steps.ts';

export interface SessionReply {
  status: number;
  body: Buffer;
}

export interface Exchange {
  /** https; nothing it answers leads elsewhere. */
  url: string;
  identity: ClientIdentity;
  /** The run token: a bearer, never logged. */
  token: string;
  maxReplyBytes: number;
  steps: Steps;
  /** The step that sending and waiting is. */
  step: Extract<Step, 'exchange' | 'started'>;
  /** Makes the body, given the exporter of this very connection (32 bytes, hex). */
  body: (exporter: string) => Promise<Buffer>;
}

function unreachable(url: URL, cause: unknown): EvaluatorError {
  const { code, message } = cause instanceof Error ? (cause as NodeJS.ErrnoException) : { message: 'closed' };
  return new EvaluatorError('key_server_unreachable', `${url.host}: ${code ?? message}`, { cause });
}

/** A server that does not answer in time is one that is not there: both may pass. */
async function inTime<T>(url: URL, step: Promise<T>): Promise<T> {
  return step.catch((error) => {
    if (!isEvaluatorError(error, 'unlock_timeout')) throw error;
    throw new EvaluatorError('key_server_unreachable', `${url.host}: ${error.message}`, { cause: error });
  });
}

function connect(url: URL, identity: ClientIdentity, signal: AbortSignal): Promise<TLSSocket> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const socket = tlsConnect({
      host,
      port: Number(url.port || 443),
      // An address is no server name (RFC 6066); the certificate is compared with `host` either way.
      servername: isIP(host) ? '' : host,
      secureContext: identity.context,
      rejectUnauthorized: true,
    });
    const stop = () => socket.destroy();
    signal.addEventListener('abort', stop, { once: true });
    socket.once('secureConnect', () => {
      signal.removeEventListener('abort', stop);
      resolve(socket);
    });
    // Stays for the socket's life: while a quote is made, nobody else listens.
    socket.on('error', (cause) => {
      const untrusted = socket.authorizationError as unknown;
      if (!untrusted) return reject(unreachable(url, cause));
      const message = `${url.host}: its certificate is not one of the plan's CA for this name (${untrusted})`;
      reject(new EvaluatorError('key_server_untrusted', message, { cause }));
    });
    socket.once('close', () => reject(unreachable(url, null)));
  });
}

/** Names this connection on both ends (RFC 9266): a quote over it fits no other one. */
function exporterOf(socket: TLSSocket, url: URL): string {
  try {
    const { length, label } = EXPORTER;
    return socket.exportKeyingMaterial(length, label, Buffer.alloc(0)).toString('hex');
  } catch (cause) {
    throw unreachable(url, cause);
  }
}

function send(
  socket: TLSSocket,
  url: URL,
  exchange: Exchange,
  body: Buffer,
  signal: AbortSignal,
): Promise<SessionReply> {
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown) => reject(unreachable(url, cause));
    if (socket.destroyed) return fail(null);
    const outgoing = request(
      {
        createConnection: () => socket,
        method: 'POST',
        path: `${url.pathname}${url.search}`,
        headers: {
          host: url.host,
          authorization: `Bearer ${exchange.token}`,
          'content-type': 'application/json',
          'content-length': body.length,
          connection: 'close',
        },
        signal,
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        let size = 0;
        incoming.on('data', (chunk: Buffer) => {
          size += chunk.length;
          chunks.push(chunk);
          if (size <= exchange.maxReplyBytes) return;
          const message = `${url.host}: a reply larger than ${exchange.maxReplyBytes} bytes`;
          reject(new EvaluatorError('key_reply_malformed', message));
          outgoing.destroy();
        });
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) }));
        incoming.on('error', fail);
      },
    );
    outgoing.on('error', fail);
    outgoing.on('close', () => fail(null));
    outgoing.end(body);
  });
}

/**
 * One exchange on one connection of its own: TLS 1.3, mutual, the plan's CA alone, the server's name checked, no
 * resumption, no redirect (any status is handed back), the reply capped.
 * @throws key_server_untrusted, key_server_unreachable, key_reply_malformed (over the cap), and what
 * `body` throws.
 */
export async function exchangeOnce(exchange: Exchange): Promise<SessionReply> {
  const { identity, steps, step } = exchange;
  const url = new URL(exchange.url);
  let socket: TLSSocket | null = null;
  try {
    const connected = await inTime(
      url,
      steps('connect', (signal) => connect(url, identity, signal)),
    );
    socket = connected;
    const body = await exchange.body(exporterOf(connected, url));
    return await inTime(
      url,
      steps(step, (signal) => send(connected, url, exchange, body, signal)),
    );
  } finally {
    socket?.destroy();
  }
}
