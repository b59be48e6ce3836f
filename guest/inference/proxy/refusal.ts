/**
 * Every reason for which the proxy gives an agent no answer of a model, with the HTTP status it comes with. What
 * the agent can mend is 4xx; a failure of the model's endpoint is 5xx (docs/inference.md).
 */
export const REFUSALS = {
  request_malformed: 400,
  field_refused: 400,
  model_refused: 400,
  unauthorized: 401,
  cap_exhausted: 403,
  route_unknown: 404,
  method_not_allowed: 405,
  request_too_large: 413,
  busy: 429,
  upstream_rate_limited: 429,
  upstream_unreachable: 502,
  upstream_error: 502,
  upstream_reply_refused: 502,
  upstream_timeout: 504,
} as const satisfies Record<string, number>;

export type RefusalCode = keyof typeof REFUSALS;

/** Why an agent gets no answer, for the agent to read. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  /** The member of the request that is at fault, as `messages.0.role`; null where it is none. */
  readonly param: string | null;

  /** @param message never a secret, nothing of the endpoint's own words. */
  constructor(code: RefusalCode, message: string, param: string | null = null) {
    super(message);
    this.code = code;
    this.param = param;
  }
}

/** The body of a refusal, as clients of the API read errors. */
export function refusalBody({ code, message, param }: Refusal): Buffer {
  const type = REFUSALS[code] < 500 ? 'invalid_request_error' : 'upstream_error';
  return Buffer.from(JSON.stringify({ error: { message, type, param, code } }));
}
