import { CODES, type Code, EvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { SessionReply } from './session.ts';

const REASON = /^[a-z][a-z0-9_]{0,63}$/;

const isCode = (reason: string): reason is Code => Object.hasOwn(CODES, reason);

/** The reason of a refusal, where its body gives one. */
function reasonOf(reply: SessionReply, maxBytes: number): string | null {
  try {
    const body = parseForeignJson(reply.body, { maxBytes, maxDepth: 4 });
    const reason = (body as { reason_code?: unknown } | null)?.reason_code;
    return typeof reason === 'string' && REASON.test(reason) ? reason : null;
  } catch {
    // The status says enough.
    return null;
  }
}

/**
 * A refusal by the challenge as an error of the guest. Its reasons are this project's own codes; one that this
 * guest does not know, or none, is `key_denied`. A failure of the moment, which decided nothing, is
 * `key_release_unavailable`.
 * @param what was asked for, for the message.
 */
export function refusal(what: string, reply: SessionReply, maxBytes: number): EvaluatorError {
  const { status } = reply;
  const reason = reasonOf(reply, maxBytes);
  const known = reason !== null && isCode(reason) ? reason : null;
  const passes = status >= 500 || status === 429 || (known !== null && CODES[known] === 'infra');
  return new EvaluatorError(
    passes ? 'key_release_unavailable' : (known ?? 'key_denied'),
    `${what}: refused by the challenge with status ${status}: ${reason ?? 'no reason given'}`,
  );
}
