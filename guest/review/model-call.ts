import { type Code, EvaluatorError } from '../errors.ts';
import { exchange as exchangeWithModel, isLoopback, type ModelFailure } from '../net/model-exchange.ts';
import { MAX_MODEL_REPLY_BYTES } from '../wire/model-reply.ts';
import type { ModelEndpoint, ModelLimits, ReviewHost } from './config.ts';
import type { PlannedRequest } from './request.ts';

/** Spec/09: connect 10 s, total 300 s. */
export const MODEL_LIMITS: ModelLimits = { connectMs: 10_000, totalMs: 300_000 };

function codeOfStatus(status: number): Code {
  if (status >= 300 && status < 400) return 'model_redirected';
  if (status === 401 || status === 403) return 'model_unauthorized';
  if (status === 429) return 'model_rate_limited';
  return status >= 500 ? 'model_unavailable' : 'model_status_unexpected';
}

function errorOf(failure: ModelFailure): EvaluatorError {
  switch (failure.kind) {
    case 'status':
      return new EvaluatorError(codeOfStatus(failure.status), `model: status ${failure.status}`);
    case 'encoded':
      return new EvaluatorError(
        'model_encoding_refused',
        'model: the reply is encoded; identity was asked for',
      );
    case 'too_large':
      return new EvaluatorError('model_reply_too_large', `model: more than ${failure.maxBytes} bytes`);
    case 'late':
      return new EvaluatorError('model_timeout', `model: not ${failure.what} within ${failure.ms} ms`);
    case 'aborted':
      return new EvaluatorError('review_aborted', 'model: the review was ended');
    case 'unreachable': {
      const { cause } = failure;
      return new EvaluatorError('model_unreachable', `model: ${cause?.code ?? 'broken off'}`, { cause });
    }
  }
}

/**
 * One exchange with the model: no redirect, no proxy, no retry, no encoding, TLS verified, every limit kept.
 * @returns the body of a reply with status 200.
 * @throws model_unreachable, model_timeout, model_redirected, model_unauthorized, model_rate_limited,
 *   model_unavailable, model_status_unexpected, model_encoding_refused, model_reply_too_large, review_aborted.
 */
export function exchange(
  body: Buffer,
  endpoint: ModelEndpoint,
  limits: ModelLimits,
  signal: AbortSignal,
): Promise<Buffer> {
  return exchangeWithModel(body, {
    ...endpoint,
    ...limits,
    maxReplyBytes: MAX_MODEL_REPLY_BYTES,
    signal,
    onBytes: () => undefined,
    failed: errorOf,
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
  const isPlain = url?.protocol === 'http:' && isLoopback(url.hostname);
  if (url && !url.username && (url.protocol === 'https:' || isPlain)) return url.href;
  throw new EvaluatorError('usage', '--model-endpoint must be an https:// URL, or http:// on this machine');
}
