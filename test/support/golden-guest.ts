import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { connectGuestAgent, type GuestAgent } from '../../guest/attest/dstack.ts';
import { cutToDeclaredLength, parseQuote } from '../../guest/attest/quote.ts';
import { type ClientIdentity, clientIdentity } from '../../guest/golden/ra-tls.ts';
import { createSteps, STEP_DEADLINES_MS, type Step, type Steps } from '../../guest/golden/steps.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { type EnvelopeContext, recipientKey, sealKeys } from '../../guest/wire/key-envelope.ts';
import {
  keyReleaseReportData,
  parseKeyRequest,
  parseStarted,
  type ReleasedKeys,
} from '../../guest/wire/key-release.ts';
import { type EvalPlan, planDigest } from '../../guest/wire/plan.ts';
import { startGuestAgent } from '../../simulator/agent-api.ts';
import type { Fault } from '../../simulator/faults.ts';
import type { Platform } from '../../simulator/platform.ts';
import type { Answer, KeyServer, Received } from './key-server.ts';
import { scratchFolder } from './scratch.ts';
import { NOW_MS, signedPlan, testPlatform } from './valid-result.ts';

export const NONCE = 'key-nonce-001';
export const GRANT_ID = 'ab'.repeat(16);

/** A simulated machine whose guest agent answers until the test is over. */
export async function goldenMachine(
  faults: readonly Fault[] = [],
  deadlineMs = 20_000,
): Promise<{ platform: Platform; agent: GuestAgent }> {
  const folder = scratchFolder();
  const platform = await testPlatform({ faults });
  const socketPath = join(folder, 'dstack.sock');
  const { close } = await startGuestAgent({ socketPath, platform, faults, clock: () => NOW_MS });
  onTestFinished(async () => {
    await close();
  });
  return { platform, agent: connectGuestAgent({ socketPath, deadlineMs }) };
}

/** A plan that asks this server for keys. */
export function sealedPlan(platform: Platform, server: KeyServer, overrides: Partial<EvalPlan> = {}) {
  const key_release = { url: `${server.origin}/key-release/v1/runs/run-1`, nonce: NONCE };
  const { plan } = signedPlan(platform, { server_ca_pem: server.caPem, key_release, ...overrides });
  return { plan, keyRelease: plan.key_release ?? key_release };
}

/** Steps with these deadlines, and the marks they leave. */
export function testSteps(
  deadlinesMs: Partial<Record<Step, number>> = {},
  signal: AbortSignal = new AbortController().signal,
): { steps: Steps; marks: string[] } {
  const marks: string[] = [];
  const mark = (step: Step, at: string) => void marks.push(`${step} ${at}`);
  return {
    marks,
    steps: createSteps({ deadlinesMs: { ...STEP_DEADLINES_MS, ...deadlinesMs }, mark, signal }),
  };
}

export function testIdentity(agent: GuestAgent, plan: EvalPlan): Promise<ClientIdentity> {
  return clientIdentity({ agent, plan, steps: testSteps().steps });
}

/** A clock whose sleeps take no time and are counted. */
export function quickClock() {
  let now = 0;
  const sleeps: number[] = [];
  return {
    sleeps,
    monotonicMs: () => now,
    sleep: async (ms: number) => {
      sleeps.push(ms);
      now += ms;
    },
  };
}

export const json = (status: number, document: object): Answer => ({
  status,
  body: encodeCanonical(document),
});

export function keysOf(plan: EvalPlan): ReleasedKeys {
  return {
    schema_version: 1,
    grant_id: GRANT_ID,
    task_keys: plan.tasks.map(({ task_id }, i) => ({ task_id, key: `${i}d`.repeat(32) })),
  };
}

/** True when the request's quote is bound to the connection it came on, and to this plan. */
export function isBound(received: Received, plan: EvalPlan): boolean {
  const request = parseKeyRequest(received.body);
  const { reportData } = parseQuote(cutToDeclaredLength(Buffer.from(request.quote, 'hex')));
  const expected = keyReleaseReportData({
    evalRunId: plan.eval_run_id,
    nonce: NONCE,
    planDigest: planDigest(plan),
    spkiDigest: received.spki,
    tlsExporter: received.exporter,
    recipientPublicKey: request.recipient_public_key,
  });
  return expected.equals(reportData);
}

/** Keys for the one who asked, or, with a change, for someone else. */
export function release(
  received: Received,
  keys: ReleasedKeys,
  change: Partial<EnvelopeContext> & { recipient?: string } = {},
): Answer {
  const request = parseKeyRequest(received.body);
  const { recipient = request.recipient_public_key, ...context } = change;
  const bound = { eval_run_id: request.eval_run_id, nonce: request.nonce, spki: received.spki, ...context };
  const { privateKey } = recipientKey();
  return json(200, sealKeys(keys, recipient, bound, privateKey, Buffer.alloc(12, 9)));
}

export function receiptFor(received: Received, change: { grant_id?: string } = {}): Answer {
  return json(200, { ...parseStarted(received.body), received_at_ms: NOW_MS, ...change });
}
