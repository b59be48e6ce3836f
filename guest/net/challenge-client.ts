import { request } from 'node:https';
import { EvaluatorError } from '../errors.ts';

const CALL_DEADLINE_MS = 30_000;
const MAX_REPLY_BYTES = 64 * 1024;

export interface Reply {
  status: number;
  body: Buffer;
}

export interface ChallengeRequest {
  method: 'GET' | 'POST';
  url: string;
  /** The run token: a bearer, never logged. */
  token: string;
  /** The signed document's server_ca_pem, the only issuer that is believed; null, before there is one: the public ones. */
  caPem: string | null;
  body: Buffer | null;
  maxReplyBytes: number;
}

/**
 * One HTTPS exchange with the challenge: TLS 1.3, the given CA alone, no redirect (any status is handed
 * back), no proxy, a size cap and a deadline.
 * @throws challenge_unreachable on a network failure or a reply over the cap.
 */
export function askChallenge(call: ChallengeRequest): Promise<Reply> {
  const headers: Record<string, string | number> = { authorization: `Bearer ${call.token}` };
  if (call.body) {
    headers['content-type'] = 'application/json';
    headers['content-length'] = call.body.length;
  }
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown) =>
      reject(new EvaluatorError('challenge_unreachable', `${call.method} ${call.url}: ${what}`, { cause }));
    const outgoing = request(
      call.url,
      {
        method: call.method,
        headers,
        ...(call.caPem === null ? {} : { ca: call.caPem }),
        minVersion: 'TLSv1.3',
        // Said here, or a variable of the environment could say otherwise.
        rejectUnauthorized: true,
        agent: false,
        signal: AbortSignal.timeout(CALL_DEADLINE_MS),
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        let size = 0;
        incoming.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > call.maxReplyBytes) {
            outgoing.destroy();
            fail(`reply larger than ${call.maxReplyBytes} bytes`);
          } else chunks.push(chunk);
        });
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) }));
        incoming.on('error', (error) => fail(error.message, error));
      },
    );
    outgoing.on('error', (error) => fail(error.message, error));
    outgoing.end(call.body ?? undefined);
  });
}

/** A small reply's size cap. */
export const SMALL_REPLY = MAX_REPLY_BYTES;
