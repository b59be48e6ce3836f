import { EvaluatorError, isEvaluatorError } from '../errors.ts';

const MAX_ERROR_TEXT = 200;

/** Text of the guest agent for a message of ours: printable ASCII, capped. */
export function quoteAgentText(text: unknown): string {
  const printable = String(text).replace(/[^\x20-\x7e]/g, '?');
  return JSON.stringify(printable.slice(0, MAX_ERROR_TEXT));
}

/** The SDK reports everything as a plain Error; only a system error carries a string code. */
function toGuestAgentError(method: string, cause: unknown): EvaluatorError {
  if (isEvaluatorError(cause)) return cause;
  const error = cause instanceof Error ? cause : new Error(String(cause));
  const { message } = error;
  if ('code' in error && typeof error.code === 'string') {
    return new EvaluatorError('guest_agent_unreachable', `guest agent, ${method}: ${error.code}`, { cause });
  }
  if (message === 'request timed out' || message === 'request aborted') {
    return new EvaluatorError('guest_agent_timeout', `guest agent, ${method}: ${message}`, { cause });
  }
  if (message === 'failed to parse response') {
    return new EvaluatorError('guest_agent_malformed', `guest agent, ${method}: the reply is not JSON`, {
      cause,
    });
  }
  // Info's reply had no tcb_info, which the SDK parses unseen: an error reply, its text lost.
  if (error instanceof SyntaxError && message.startsWith('"undefined"')) {
    return new EvaluatorError('guest_agent_error', `guest agent, ${method}: an error reply`, { cause });
  }
  // A member that the SDK takes for granted was absent or of another type.
  if (error instanceof TypeError || error instanceof SyntaxError) {
    return new EvaluatorError('guest_agent_malformed', `guest agent, ${method}: the reply lacks members`, {
      cause,
    });
  }
  return new EvaluatorError('guest_agent_error', `guest agent, ${method}: ${quoteAgentText(message)}`, {
    cause,
  });
}

/** The SDK ignores the HTTP status, so an error reply can come back as if it were an answer. */
function refuseErrorReply(method: string, reply: unknown): void {
  if (typeof reply !== 'object' || reply === null || !('error' in reply)) return;
  throw new EvaluatorError('guest_agent_error', `guest agent, ${method}: ${quoteAgentText(reply.error)}`);
}

/**
 * One call of the SDK, with a wall-clock limit of our own: a hung agent would otherwise be a silent, billed VM.
 * @throws guest_agent_timeout, guest_agent_unreachable, guest_agent_error, guest_agent_malformed.
 */
export async function callWithin(
  method: string,
  deadlineMs: number,
  send: () => Promise<unknown>,
): Promise<unknown> {
  const deadline = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    deadline.reject(
      new EvaluatorError('guest_agent_timeout', `guest agent, ${method}: no reply within ${deadlineMs} ms`),
    );
  }, deadlineMs);
  try {
    const reply = await Promise.race([send(), deadline.promise]);
    refuseErrorReply(method, reply);
    return reply;
  } catch (cause) {
    throw toGuestAgentError(method, cause);
  } finally {
    clearTimeout(timer);
  }
}
