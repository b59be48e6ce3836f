import {
  exchange as exchangeWithModel,
  type ModelCall,
  type ModelFailure,
} from '../../net/model-exchange.ts';
import { Refusal } from './refusal.ts';
import { MAX_REPLY_BYTES } from './reply.ts';

/** The model's endpoint, and how long it may take. The URL is https. */
export type Upstream = Pick<ModelCall, 'url' | 'apiKey' | 'caPem' | 'connectMs' | 'totalMs'>;

const ENDPOINT = "the model's endpoint";

function ofStatus(status: number): Refusal {
  if (status === 429) return new Refusal('upstream_rate_limited', `${ENDPOINT} wants fewer requests`);
  if (status >= 300 && status < 400)
    return new Refusal('upstream_reply_refused', `${ENDPOINT} answered with a redirect`);
  return new Refusal('upstream_error', `${ENDPOINT} answered with status ${status}`);
}

function refusalOf(failure: ModelFailure): Refusal {
  switch (failure.kind) {
    case 'status':
      return ofStatus(failure.status);
    case 'encoded':
      return new Refusal('upstream_reply_refused', `${ENDPOINT} answered with an encoded body`);
    case 'too_large':
      return new Refusal(
        'upstream_reply_refused',
        `${ENDPOINT} answered with more than ${failure.maxBytes} bytes`,
      );
    case 'late':
      return new Refusal('upstream_timeout', `${ENDPOINT} was not ${failure.what} within ${failure.ms} ms`);
    case 'unreachable':
    case 'aborted':
      return new Refusal('upstream_unreachable', `${ENDPOINT} cannot be reached`);
  }
}

/**
 * One exchange with the model's endpoint. Nothing of the agent's request is in it but the body that was made from it.
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
  return exchangeWithModel(body, {
    ...upstream,
    maxReplyBytes: MAX_REPLY_BYTES,
    signal,
    onBytes,
    failed: refusalOf,
  });
}
