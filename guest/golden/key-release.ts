import type { GuestAgent } from '../attest/dstack.ts';
import { checkOwnEvidence } from '../attest/evidence.ts';
import { EvaluatorError } from '../errors.ts';
import { decodeCanonical, encodeCanonical } from '../wire/canonical.ts';
import { openKeys, recipientKey } from '../wire/key-envelope.ts';
import {
  type KeyReleaseBinding,
  type KeyReply,
  type KeyRequest,
  keyReleaseReportData,
  keyReplySchema,
  type ReleasedKeys,
} from '../wire/key-release.ts';
import { type EvalPlan, planDigest } from '../wire/plan.ts';
import { parseSchema } from '../wire/scalars.ts';
import { refusal } from './denial.ts';
import type { ClientIdentity } from './ra-tls.ts';
import { type RetryClock, retryPassing } from './retry.ts';
import { exchangeOnce, type SessionReply } from './session.ts';
import type { Steps } from './steps.ts';

/** Hex of 1024 keys and their names, with room. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;

export interface KeyReleaseInput {
  agent: GuestAgent;
  identity: ClientIdentity;
  plan: EvalPlan;
  keyRelease: NonNullable<EvalPlan['key_release']>;
  runToken: string;
  steps: Steps;
  clock: RetryClock;
  /** How long network failures and outages are waited out, ms. */
  retryForMs: number;
  signal: AbortSignal;
}

/** The request for one connection: a fresh quote over it, checked by the rules the challenge has (spec/04). */
async function makeRequest(input: KeyReleaseInput, binding: KeyReleaseBinding): Promise<KeyRequest> {
  const { measurement, key_provider: keyProvider, vm_shape: vmShape } = input.plan.eval_app;
  const reportData = keyReleaseReportData(binding);
  const raw = await input.steps('quote', () => input.agent.getQuote(reportData));
  const evidence = checkOwnEvidence(raw, { measurement, keyProvider, vmShape, reportData });
  return {
    schema_version: 3,
    eval_run_id: binding.evalRunId,
    nonce: binding.nonce,
    quote: evidence.tdx_quote,
    event_log: evidence.event_log,
    recipient_public_key: binding.recipientPublicKey,
  };
}

function readReply(reply: SessionReply): Extract<KeyReply, { released: true }> {
  if (reply.status !== 200) throw refusal('key release', reply, MAX_REPLY_BYTES);
  let parsed: KeyReply;
  try {
    parsed = parseSchema(keyReplySchema, decodeCanonical(reply.body, MAX_REPLY_BYTES), 'key reply');
  } catch (cause) {
    throw new EvaluatorError('key_reply_malformed', `key release: ${(cause as Error).message}`, { cause });
  }
  if (!parsed.released) throw refusal('key release', reply, MAX_REPLY_BYTES);
  return parsed;
}

function verifyTasks(released: ReleasedKeys, plan: EvalPlan): void {
  const given = released.task_keys.map((task) => task.task_id);
  const ordered = plan.tasks.map((task) => task.task_id);
  if (given.length === ordered.length && given.every((name, i) => name === ordered[i])) return;
  throw new EvaluatorError('key_reply_mismatch', "key release: the keys are not those of the plan's tasks");
}

async function requestOnce(input: KeyReleaseInput): Promise<ReleasedKeys> {
  const { plan, identity, keyRelease } = input;
  const recipient = recipientKey();
  const reply = await exchangeOnce({
    url: keyRelease.url,
    identity,
    token: input.runToken,
    maxReplyBytes: MAX_REPLY_BYTES,
    steps: input.steps,
    step: 'exchange',
    body: async (tlsExporter) =>
      encodeCanonical(
        await makeRequest(input, {
          evalRunId: plan.eval_run_id,
          nonce: keyRelease.nonce,
          planDigest: planDigest(plan),
          spkiDigest: identity.spkiDigest,
          tlsExporter,
          recipientPublicKey: recipient.publicHex,
        }),
      ),
  });
  const released = openKeys(readReply(reply), recipient.privateKey, {
    eval_run_id: plan.eval_run_id,
    nonce: keyRelease.nonce,
    spki: identity.spkiDigest,
  });
  verifyTasks(released, plan);
  return released;
}

/**
 * Asks the challenge for the keys of the plan's tasks: connect, quote over this connection, one exchange, open
 * the envelope (spec/04). Each attempt has its own connection, quote and recipient key.
 * @throws guest_agent_*, what `checkOwnEvidence` throws, key_server_*, key_release_unavailable, key_reply_*,
 * key_envelope_invalid, unlock_timeout; the challenge's own reason for a denial, or key_denied.
 */
export function requestKeys(input: KeyReleaseInput): Promise<ReleasedKeys> {
  const { clock, retryForMs: forMs, signal } = input;
  return retryPassing(() => requestOnce(input), { clock, forMs, signal });
}
