import type { ServerResponse } from 'node:http';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { isOutage } from '../verify/outage.ts';

/** HTTP status of each refusal; anything else an input can provoke is 422. */
const STATUS: Readonly<Partial<Record<Code, number>>> = {
  request_malformed: 400,
  json_malformed: 400,
  json_not_canonical: 400,
  json_too_deep: 400,
  schema_invalid: 400,
  run_token_invalid: 401,
  review_token_invalid: 401,
  route_unknown: 404,
  method_not_allowed: 405,
  request_late: 408,
  result_conflict: 409,
  run_closed: 409,
  run_started: 409,
  report_conflict: 409,
  review_call_conflict: 409,
  review_closed: 409,
  assignment_superseded: 409,
  grants_exhausted: 409,
  grant_superseded: 409,
  tls_connection_reused: 409,
  run_expired: 410,
  assignment_expired: 410,
  result_too_large: 413,
  request_too_large: 413,
  json_too_large: 413,
  rate_limited: 429,
  server_busy: 503,
  verifier_backlog_full: 503,
};

export interface Reply {
  status: number;
  contentType: 'application/json' | 'application/zip';
  body: Buffer;
}

export function jsonReply(status: number, document: object): Reply {
  return { status, contentType: 'application/json', body: encodeCanonical(document) };
}

/** What a refusal looks like from outside: its code alone, the message stays here. */
export function errorReply(error: unknown): Reply {
  if (!(error instanceof EvaluatorError)) {
    return jsonReply(500, { schema_version: 1, reason_code: 'verifier_failed' });
  }
  return jsonReply(STATUS[error.code] ?? 422, { schema_version: 1, reason_code: error.code });
}

/** A refusal of keys, as a guest reads it: its code alone. */
export function denialReply(error: unknown): Reply {
  const code = error instanceof EvaluatorError ? error.code : 'verifier_failed';
  if (code === 'verifier_failed') return jsonReply(500, { released: false, reason_code: code });
  const status = isOutage(code) ? 503 : (STATUS[code] ?? 403);
  return jsonReply(status, { released: false, reason_code: code });
}

/** Sends a reply; after a refusal the connection is closed, so that no unread body is carried on. */
export function send(response: ServerResponse, reply: Reply): void {
  if (reply.status >= 400) response.setHeader('Connection', 'close');
  if (reply.status === 429 || reply.status === 503) response.setHeader('Retry-After', '10');
  response.writeHead(reply.status, {
    'Content-Type': reply.contentType,
    'Content-Length': reply.body.length,
    'Cache-Control': 'no-store',
  });
  response.end(reply.body);
}
