import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { askChallenge, type Reply, SMALL_REPLY } from '../net/challenge-client.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { EvalPlan } from '../wire/plan.ts';
import type { Host } from './config.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** 5xx, 429, a torn receipt and network failures may pass; every other answer is the challenge's last word. */
const mayPass = (status: number) => status >= 500 || status === 429 || status === 200 || status === 202;

type DeliveryHost = Pick<Host, 'inputs' | 'journal' | 'nowMs' | 'clock' | 'signal'>;

async function post(plan: EvalPlan, bytes: Buffer, host: DeliveryHost): Promise<Reply | null> {
  try {
    return await askChallenge({
      method: 'POST',
      url: plan.result.url,
      token: host.inputs.runToken,
      caPem: plan.server_ca_pem,
      body: bytes,
      maxReplyBytes: SMALL_REPLY,
    });
  } catch (error) {
    if (isEvaluatorError(error, 'challenge_unreachable')) return null;
    throw error;
  }
}

/** The receipt in a reply; null when there is none, or none that can be read: the same bytes are sent again. */
function receiptOf(reply: Reply): unknown {
  if (reply.status !== 200 && reply.status !== 202) return null;
  try {
    return parseForeignJson(reply.body, { maxBytes: SMALL_REPLY, maxDepth: 4 });
  } catch {
    return null;
  }
}

function refusal(reply: Reply): EvaluatorError {
  let reason = '';
  try {
    const body = parseForeignJson(reply.body, { maxBytes: SMALL_REPLY, maxDepth: 4 }) as {
      reason_code?: unknown;
    };
    if (typeof body.reason_code === 'string') reason = ` (${body.reason_code.slice(0, 64)})`;
  } catch {
    // The status says enough.
  }
  return new EvaluatorError(
    'result_refused',
    `the challenge refused the RESULT: status ${reply.status}${reason}; the line on stdout can be posted again`,
  );
}

/**
 * POSTs the exact RESULT bytes until there is a receipt or the plan has expired (spec/01).
 * @returns the receipt document. @throws result_refused, result_undelivered.
 */
export async function deliver(plan: EvalPlan, bytes: Buffer, host: DeliveryHost): Promise<unknown> {
  for (
    let attempt = 1, pauseMs = FIRST_PAUSE_MS;
    ;
    attempt++, pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  ) {
    const reply = await post(plan, bytes, host);
    host.journal.write({ event: 'delivery', attempt, status: reply?.status ?? null });
    const receipt = reply && receiptOf(reply);
    if (receipt !== null) return receipt;
    if (reply && !mayPass(reply.status)) throw refusal(reply);
    if (host.nowMs() + pauseMs >= plan.expires_at_ms) {
      throw new EvaluatorError(
        'result_undelivered',
        'no receipt before the plan expired; the RESULT line on stdout can be posted by hand',
      );
    }
    await host.clock.sleep(pauseMs);
    host.signal.throwIfAborted();
  }
}
