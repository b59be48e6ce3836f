import { CODES, type Code, EvaluatorError } from '../errors.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { SessionReply } from './session.ts';

const REASON = /^[a-z][a-z0-9_]{0,63}$/;

const isCode = (reason: string): reason is Code => Object.hasOwn(CODES, reason);

/** A failure of the moment: nothing was decided, so the same may be asked again. */
export const mayPass = ({ status }: SessionReply): boolean => status >= 500 || status === 429;

/** The reason of a refusal, where its body gives one. */
export function reasonOf(reply: SessionReply, maxBytes: number): string | null {
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
 * A refusal by the challenge as an error of the guest: its reasons are this project's own codes; one that this
 * guest does not know, or none, is `key_denied`.
 */
export function denial(what: string, reason: string | null, status: number): EvaluatorError {
  const code = reason !== null && isCode(reason) ? reason : 'key_denied';
  return new EvaluatorError(code, `${what}: refused by the challenge: ${reason ?? `status ${status}`}`);
}
