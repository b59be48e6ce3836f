import { isEvaluatorError } from '../errors.ts';
import { askChallenge, type Reply } from '../net/challenge-client.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { ReviewHost } from './config.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** How long an outage of the challenge is waited out before the report. */
export const PATIENCE_MS = 60_000;

export interface Ask {
  method: 'GET' | 'POST';
  /** Below the challenge's base URL. */
  path: string;
  body: Buffer | null;
  maxReplyBytes: number;
  /** When waiting is over, ms since the epoch. */
  untilMs: number;
  onAttempt?: (attempt: number, status: number | null) => void;
}

/** 5xx, 429 and network failures may pass; every other answer is the challenge's last word. */
const mayPass = (status: number) => status >= 500 || status === 429;

async function attemptOnce(ask: Ask, { inputs, progress }: ReviewHost): Promise<Reply | null> {
  try {
    return await askChallenge({
      method: ask.method,
      url: `${inputs.apiBaseUrl}${ask.path}`,
      token: inputs.token,
      caPem: progress.serverCaPem ?? inputs.serverCaPem,
      body: ask.body,
      maxReplyBytes: ask.maxReplyBytes,
    });
  } catch (error) {
    if (isEvaluatorError(error, 'challenge_unreachable')) return null;
    throw error;
  }
}

/**
 * Asks the challenge until it has a word to say, or `untilMs` has come.
 * @returns its reply; null: there was none. A reply that may pass is the last one.
 */
export async function askPatiently(ask: Ask, host: ReviewHost): Promise<Reply | null> {
  for (
    let attempt = 1, pauseMs = FIRST_PAUSE_MS;
    ;
    attempt++, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    const reply = await attemptOnce(ask, host);
    ask.onAttempt?.(attempt, reply?.status ?? null);
    if (reply && !mayPass(reply.status)) return reply;
    if (host.nowMs() + pauseMs >= ask.untilMs) return reply;
    await host.sleep(pauseMs);
    host.signal.throwIfAborted();
  }
}

/** What a refusal says: its status, and the challenge's reason when it gives one. */
export function statusOf(reply: Reply | null): string {
  if (reply === null) return 'no answer';
  try {
    const body = parseForeignJson(reply.body, { maxBytes: 65_536, maxDepth: 4 }) as { reason_code?: unknown };
    if (typeof body.reason_code === 'string' && /^[a-z0-9_]{1,64}$/.test(body.reason_code))
      return `status ${reply.status} (${body.reason_code})`;
  } catch {
    // The status says enough.
  }
  return `status ${reply.status}`;
}
