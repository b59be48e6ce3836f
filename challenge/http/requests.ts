import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import type { Run } from '../ledger/ledger.ts';
import { GrowingBuffer } from './growing-buffer.ts';

/** Compared with when nothing is known by an id, so that the answer takes as long; no token has this hash. */
const DUMMY_TOKEN_SHA256 = randomBytes(32);

/** The bearer token of a request, or an empty string. */
function bearerToken(request: IncomingMessage): string {
  return /^Bearer ([\x21-\x7e]{1,256})$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
}

/**
 * Whether the request's token has this SHA-256 (hex). Null, for what is not known, takes as long as a wrong
 * token.
 */
export function carriesToken(request: IncomingMessage, tokenSha256: string | null): boolean {
  const given = createHash('sha256').update(bearerToken(request)).digest();
  const expected = tokenSha256 === null ? DUMMY_TOKEN_SHA256 : Buffer.from(tokenSha256, 'hex');
  return timingSafeEqual(given, expected) && tokenSha256 !== null;
}

/**
 * The run whose token the request carries. An unknown run and a wrong token are one answer, in one time.
 * @throws run_token_invalid.
 */
export function authorisedRun(request: IncomingMessage, run: Run | null): Run {
  if (carriesToken(request, run?.runTokenSha256 ?? null) && run) return run;
  throw new EvaluatorError('run_token_invalid', 'request: no such run, or not its token');
}

/** How much of a body is read, and the code of one that is larger. */
export interface BodyLimit {
  maxBytes: number;
  code: Extract<Code, 'result_too_large' | 'request_too_large'>;
}

function tooLarge({ maxBytes, code }: BodyLimit): EvaluatorError {
  return new EvaluatorError(code, `request: a body above ${maxBytes} bytes is not read`);
}

/** Refuses a body by its announced length, before a byte of it is read. @throws the limit's code. */
export function verifyAnnouncedSize(request: IncomingMessage, limit: BodyLimit): void {
  if (Number(request.headers['content-length'] ?? 0) > limit.maxBytes) throw tooLarge(limit);
}

/** Reads a body and stops at the cap. @throws the limit's code; request_malformed when it breaks off. */
export async function readBody(request: IncomingMessage, limit: BodyLimit): Promise<Buffer> {
  const body = new GrowingBuffer();
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      if (body.size + (chunk as Buffer).length > limit.maxBytes) throw tooLarge(limit);
      body.append(chunk as Buffer);
    }
  } catch (cause) {
    if (cause instanceof EvaluatorError) throw cause;
    throw new EvaluatorError('request_malformed', 'request: the body broke off', { cause });
  }
  return body.bytes();
}

/** As `readBody`, but the whole body must be there within `deadlineMs`. @throws also request_late. */
export async function readBodyWithin(
  request: IncomingMessage,
  limit: BodyLimit,
  deadlineMs: number,
): Promise<Buffer> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new EvaluatorError('request_late', `request: no whole body within ${deadlineMs} ms`));
  }, deadlineMs);
  const body = readBody(request, limit);
  // When the deadline wins, nobody is left to hear that the connection was then closed.
  body.catch(() => undefined);
  try {
    return await Promise.race([body, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
