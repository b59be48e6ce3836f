import { EvaluatorError } from '../errors.ts';
import { decodeCanonical, encodeCanonical } from '../wire/canonical.ts';
import { type Started, type StartedReceipt, startedReceiptSchema } from '../wire/key-release.ts';
import type { EvalPlan } from '../wire/plan.ts';
import { parseSchema } from '../wire/scalars.ts';
import { refusal } from './denial.ts';
import type { ClientIdentity } from './ra-tls.ts';
import { isPassing, type RetryClock, retryPassing } from './retry.ts';
import { exchangeOnce, type SessionReply } from './session.ts';
import type { Steps } from './steps.ts';

const MAX_REPLY_BYTES = 64 * 1024;

export interface StartedInput {
  /** The one the keys were asked with. */
  identity: ClientIdentity;
  plan: EvalPlan;
  keyRelease: NonNullable<EvalPlan['key_release']>;
  grantId: string;
  runToken: string;
  steps: Steps;
  clock: RetryClock;
  /** How long network failures and outages are waited out, ms. */
  retryForMs: number;
  signal: AbortSignal;
}

function readReceipt(reply: SessionReply, sent: Started): StartedReceipt {
  if (reply.status !== 200 && reply.status !== 202) throw refusal('started', reply, MAX_REPLY_BYTES);
  let receipt: StartedReceipt;
  try {
    receipt = parseSchema(startedReceiptSchema, decodeCanonical(reply.body, MAX_REPLY_BYTES), 'receipt');
  } catch (cause) {
    throw new EvaluatorError('key_reply_malformed', `started: ${(cause as Error).message}`, { cause });
  }
  if (receipt.eval_run_id === sent.eval_run_id && receipt.grant_id === sent.grant_id) return receipt;
  throw new EvaluatorError('key_reply_mismatch', 'started: the receipt is for another run or grant');
}

/**
 * Says, before the first agent starts, that this attempt is the one that counts, and waits for the receipt
 * (spec/04). The same bytes each time, each on a connection of its own.
 * @throws started_undelivered when no receipt came in time, grant_superseded when a newer grant was given, other
 * reasons of the challenge (or key_denied), key_server_untrusted, key_reply_*: no agent may start then.
 */
export async function announceStarted(input: StartedInput): Promise<StartedReceipt> {
  const { identity, plan, grantId, clock, retryForMs: forMs, signal } = input;
  const started: Started = {
    schema_version: 1,
    eval_run_id: plan.eval_run_id,
    grant_id: grantId,
    event: 'started',
  };
  const bytes = encodeCanonical(started);
  const attempt = async () =>
    readReceipt(
      await exchangeOnce({
        url: `${input.keyRelease.url}/started`,
        identity,
        token: input.runToken,
        maxReplyBytes: MAX_REPLY_BYTES,
        steps: input.steps,
        step: 'started',
        body: async () => bytes,
      }),
      started,
    );
  try {
    return await retryPassing(attempt, { clock, forMs, signal });
  } catch (cause) {
    if (!isPassing(cause)) throw cause;
    throw new EvaluatorError(
      'started_undelivered',
      `started: no receipt (${cause.message}); no agent was started, so the run can be tried again`,
      { cause },
    );
  }
}
