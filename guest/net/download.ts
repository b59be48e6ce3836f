import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import type { Reply } from './challenge-client.ts';

export interface DownloadRequest {
  /** https. */
  url: string;
  /** The media type that is asked for. */
  accept: string;
  /** The only issuer that is believed; null: the public ones. */
  caPem: string | null;
  maxBytes: number;
  deadlineMs: number;
  signal: AbortSignal;
}

/** A reply, or why there is none: `too_large`, or the network's word. */
export type Downloaded = Reply | { failed: 'too_large' } | { failed: 'network'; why: string };

async function read(incoming: IncomingMessage, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * One GET over HTTPS without credentials: TLS verified, no redirect (any status is handed back), no proxy, no
 * encoding, a size cap and a deadline. Never throws.
 */
export async function download(wanted: DownloadRequest): Promise<Downloaded> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const outgoing = request(
    wanted.url,
    {
      method: 'GET',
      headers: { accept: wanted.accept, 'accept-encoding': 'identity' },
      ...(wanted.caPem === null ? {} : { ca: wanted.caPem }),
      minVersion: 'TLSv1.2',
      // Said here, or a variable of the environment could say otherwise.
      rejectUnauthorized: true,
      agent: false,
      signal: AbortSignal.any([wanted.signal, AbortSignal.timeout(wanted.deadlineMs)]),
    },
    resolve,
  );
  outgoing.on('error', reject);
  outgoing.end();
  try {
    const incoming = await promise;
    const encoding = incoming.headers['content-encoding'] ?? 'identity';
    if (encoding !== 'identity') return { failed: 'network', why: `encoded as ${encoding}, unasked` };
    const body = await read(incoming, wanted.maxBytes);
    return body === null ? { failed: 'too_large' } : { status: incoming.statusCode ?? 0, body };
  } catch (error) {
    return { failed: 'network', why: (error as Error).message };
  } finally {
    outgoing.destroy();
  }
}
