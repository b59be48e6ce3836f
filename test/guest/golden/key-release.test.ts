import { describe, expect, it } from 'vitest';
import { type KeyReleaseInput, requestKeys } from '../../../guest/golden/key-release.ts';
import { recipientKey } from '../../../guest/wire/key-envelope.ts';
import { parseKeyRequest } from '../../../guest/wire/key-release.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import type { Fault } from '../../../simulator/faults.ts';
import {
  goldenMachine,
  isBound,
  json,
  keysOf,
  NONCE,
  quickClock,
  release,
  sealedPlan,
  testIdentity,
  testSteps,
} from '../../support/golden-guest.ts';
import { type Answer, type Received, startKeyServer } from '../../support/key-server.ts';
import { rejectionCode } from '../../support/throws.ts';
import { RUN_TOKEN } from '../../support/valid-result.ts';

type Respond = (received: Received, plan: EvalPlan, count: number) => Answer | null;

/** A guest and a server that answers it like this. */
async function guestWith(respond: Respond, faults: readonly Fault[] = [], deadlineMs = 20_000) {
  const { agent, platform } = await goldenMachine(faults, deadlineMs);
  const server = await startKeyServer((received) => respond(received, plan, server.received.length));
  const { plan, keyRelease } = sealedPlan(platform, server);
  const clock = quickClock();
  const { steps, marks } = testSteps();
  const input: KeyReleaseInput = {
    agent,
    identity: await testIdentity(agent, plan),
    plan,
    keyRelease,
    runToken: RUN_TOKEN,
    steps,
    clock,
    retryForMs: 60_000,
    signal: new AbortController().signal,
  };
  return { input, server, plan, clock, marks };
}

const honest: Respond = (received, plan) => release(received, keysOf(plan));

describe('requestKeys', () => {
  it('gets the plan’s keys with a quote that is bound to this connection', async () => {
    const { input, server, plan, marks } = await guestWith(honest);
    expect(await requestKeys(input)).toEqual(keysOf(plan));
    const [received] = server.received;
    expect(received && isBound(received, plan)).toBe(true);
    expect(received).toMatchObject({
      path: '/key-release/v1/runs/run-1',
      authorization: `Bearer ${RUN_TOKEN}`,
    });
    expect(marks).toEqual([
      'connect begin',
      'connect end',
      'quote begin',
      'quote end',
      'exchange begin',
      'exchange end',
    ]);
  });

  it('works with every form of quote that agents hand out', async () => {
    const faults: Fault[] = [
      { name: 'quote-v5' },
      { name: 'hex-prefix' },
      { name: 'blank-digests' },
      { name: 'trailing-zeros', bytes: 70 },
    ];
    const { input, server, plan } = await guestWith(honest, faults);
    expect(await requestKeys(input)).toEqual(keysOf(plan));
    expect(server.received.map((received) => isBound(received, plan))).toEqual([true]);
  });

  it('asks again after an outage, with a new connection, quote and recipient key', async () => {
    const respond: Respond = (received, plan, count) =>
      count < 3
        ? json(503, { schema_version: 1, reason_code: 'server_busy' })
        : honest(received, plan, count);
    const { input, server, plan, clock } = await guestWith(respond);
    expect(await requestKeys(input)).toEqual(keysOf(plan));
    expect(server.connections()).toBe(3);
    expect(server.received.every((received) => isBound(received, plan))).toBe(true);
    const recipients = server.received.map(({ body }) => parseKeyRequest(body).recipient_public_key);
    expect(new Set(recipients).size).toBe(3);
    expect(clock.sleeps).toEqual([500, 1000]);
  });

  it.each([
    [503, { reason_code: 'server_busy' }],
    [500, {}],
    [429, { reason_code: 'rate_limited' }],
    [200, { released: false, reason_code: 'collateral_unavailable' }],
  ])('gives up an outage after its time: %i, %j', async (status, body) => {
    const { input, clock } = await guestWith(() => json(status, body));
    expect(await rejectionCode(requestKeys(input))).toBe('key_release_unavailable');
    expect(clock.monotonicMs()).toBeLessThan(60_000);
    expect(clock.sleeps.length).toBeGreaterThan(5);
  });

  it.each([
    ['measurement_not_allowed', 'measurement_not_allowed'],
    ['quote_signature_invalid', 'quote_signature_invalid'],
    ['run_expired', 'run_expired'],
    ['tcb_status_refused', 'tcb_status_refused'],
    ['moon_in_wrong_phase', 'key_denied'],
    ['constructor', 'key_denied'],
  ])('turns the denial %s into %s, and asks once', async (reason_code, code) => {
    const { input, server } = await guestWith(() => json(200, { released: false, reason_code }));
    await expect(requestKeys(input)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(reason_code),
    });
    expect(server.connections()).toBe(1);
  });

  it.each<[string, Answer, string]>([
    [
      'a wrong token',
      json(401, { schema_version: 1, reason_code: 'run_token_invalid' }),
      'run_token_invalid',
    ],
    ['a denial with a status', json(403, { released: false, reason_code: 'td_debug' }), 'td_debug'],
    ['a page of a proxy', { status: 404, body: Buffer.from('<html>') }, 'key_denied'],
    ['a redirect', { ...json(307, {}), headers: { location: 'https://elsewhere.invalid/' } }, 'key_denied'],
    ['a reason that is a sentence', json(403, { reason_code: 'Because I say so' }), 'key_denied'],
  ])('is refused by %s', async (_, answer, code) => {
    const { input, server } = await guestWith(() => answer);
    expect(await rejectionCode(requestKeys(input))).toBe(code);
    expect(server.connections()).toBe(1);
  });

  it.each<[string, Respond, string]>([
    [
      'for another recipient',
      (received, plan) => release(received, keysOf(plan), { recipient: recipientKey().publicHex }),
      'key_envelope_invalid',
    ],
    [
      'for another run',
      (received, plan) => release(received, keysOf(plan), { eval_run_id: 'run-2' }),
      'key_envelope_invalid',
    ],
    [
      'for another nonce',
      (received, plan) => release(received, keysOf(plan), { nonce: 'other' }),
      'key_envelope_invalid',
    ],
    [
      'for another certificate',
      (received, plan) => release(received, keysOf(plan), { spki: '00'.repeat(32) }),
      'key_envelope_invalid',
    ],
    [
      'without a task of the plan',
      (received, plan) => {
        const keys = keysOf(plan);
        return release(received, { ...keys, task_keys: keys.task_keys.slice(1) });
      },
      'key_reply_mismatch',
    ],
    [
      'with a task outside the plan',
      (received, plan) => {
        const keys = keysOf(plan);
        const more = { task_id: 'task-z', key: 'ee'.repeat(32) };
        return release(received, { ...keys, task_keys: [...keys.task_keys, more] });
      },
      'key_reply_mismatch',
    ],
    [
      'in another order',
      (received, plan) => {
        const keys = keysOf(plan);
        return release(received, { ...keys, task_keys: keys.task_keys.toReversed() });
      },
      'key_reply_mismatch',
    ],
    [
      'that is not canonical',
      (received, plan) => {
        const answer = release(received, keysOf(plan));
        return { ...answer, body: Buffer.concat([answer.body, Buffer.from('\n')]) };
      },
      'key_reply_malformed',
    ],
    [
      'with an unknown member',
      () => json(200, { released: false, reason_code: 'x', more: 1 }),
      'key_reply_malformed',
    ],
    ['that is empty', () => ({ status: 200, body: Buffer.alloc(0) }), 'key_reply_malformed'],
    ['that is oversized', () => ({ status: 200, body: Buffer.alloc(5_000_000) }), 'key_reply_malformed'],
  ])('refuses a reply %s', async (_, respond, code) => {
    const { input, server } = await guestWith(respond);
    expect(await rejectionCode(requestKeys(input))).toBe(code);
    expect(server.connections()).toBe(1);
  });

  it.each<[string, Fault]>([
    ['td_debug', { name: 'debug-td' }],
    ['measurement_not_planned', { name: 'wrong-measurement' }],
    ['storage_fs_not_ext4', { name: 'storage-zfs' }],
    ['event_log_invalid', { name: 'empty-names' }],
  ])('sends no evidence that would be refused: %s', async (code, fault) => {
    const { input, server } = await guestWith(honest, [fault]);
    expect(await rejectionCode(requestKeys(input))).toBe(code);
    expect(server.received).toEqual([]);
  });

  it('sends no quote over other data than this connection’s', async () => {
    const { input, server } = await guestWith(honest);
    const stale = await input.agent.getQuote(Buffer.alloc(64, 1));
    const agent = { ...input.agent, getQuote: async () => stale };
    expect(await rejectionCode(requestKeys({ ...input, agent }))).toBe('report_data_mismatch');
    expect(server.received).toEqual([]);
  });

  it('does not wait for a hung quote', async () => {
    const { input, server } = await guestWith(honest, [{ name: 'hung-call', method: 'GetQuote' }], 2000);
    expect(await rejectionCode(requestKeys(input))).toBe('guest_agent_timeout');
    const { steps, marks } = testSteps({ quote: 20 });
    const slow = await guestWith(honest, [{ name: 'slow-quote', ms: 2000 }]);
    expect(await rejectionCode(requestKeys({ ...slow.input, steps }))).toBe('unlock_timeout');
    expect(marks).toEqual(['connect begin', 'connect end', 'quote begin']);
    expect([...server.received, ...slow.server.received]).toEqual([]);
  });

  it('says no secret when it fails', async () => {
    const answers: Respond[] = [
      (received, plan) => release(received, keysOf(plan), { nonce: 'other' }),
      (received, plan) => release(received, { ...keysOf(plan), grant_id: 'short' }),
      () => json(401, { reason_code: 'run_token_invalid' }),
    ];
    for (const respond of answers) {
      const { input, plan } = await guestWith(respond);
      const error = await requestKeys(input).catch((cause: Error) => cause);
      expect(error).toBeInstanceOf(Error);
      for (const secret of [RUN_TOKEN, ...keysOf(plan).task_keys.map(({ key }) => key)])
        expect(String((error as Error).message)).not.toContain(secret);
      expect((error as Error).message).not.toContain(NONCE);
    }
  });
});
