import { describe, expect, it } from 'vitest';
import { announceStarted, type StartedInput } from '../../../guest/golden/started.ts';
import {
  GRANT_ID,
  goldenMachine,
  json,
  quickClock,
  receiptFor,
  sealedPlan,
  testIdentity,
  testSteps,
} from '../../support/golden-guest.ts';
import { type Answer, type Received, startKeyServer } from '../../support/key-server.ts';
import { rejectionCode } from '../../support/throws.ts';
import { NOW_MS, RUN_TOKEN } from '../../support/valid-result.ts';

async function guestWith(respond: (received: Received, count: number, hangUp: () => void) => Answer | null) {
  const { agent, platform } = await goldenMachine();
  const server = await startKeyServer((received, response) =>
    respond(received, server.received.length, () => response.socket?.destroy()),
  );
  const { plan, keyRelease } = sealedPlan(platform, server);
  const { steps, marks } = testSteps();
  const clock = quickClock();
  const input: StartedInput = {
    identity: await testIdentity(agent, plan),
    plan,
    keyRelease,
    grantId: GRANT_ID,
    runToken: RUN_TOKEN,
    steps,
    clock,
    retryForMs: 60_000,
    signal: new AbortController().signal,
  };
  return { input, server, clock, marks };
}

describe('announceStarted', () => {
  it('posts the notice with the client certificate and the token, and returns the receipt', async () => {
    const { input, server, marks } = await guestWith((received) => receiptFor(received));
    expect(await announceStarted(input)).toEqual({
      schema_version: 1,
      eval_run_id: 'run-1',
      grant_id: GRANT_ID,
      event: 'started',
      received_at_ms: NOW_MS,
    });
    expect(server.received).toMatchObject([
      {
        path: '/key-release/v1/runs/run-1/started',
        authorization: `Bearer ${RUN_TOKEN}`,
        spki: input.identity.spkiDigest,
        protocol: 'TLSv1.3',
      },
    ]);
    expect(server.received[0]?.body.toString()).toBe(
      `{"eval_run_id":"run-1","event":"started","grant_id":"${GRANT_ID}","schema_version":1}`,
    );
    expect(marks.slice(-2)).toEqual(['started begin', 'started end']);
  });

  it('posts the same bytes again until there is a receipt', async () => {
    const { input, server } = await guestWith((received, count, hangUp) => {
      if (count === 1) return json(503, { reason_code: 'server_busy' });
      if (count > 2) return receiptFor(received);
      hangUp();
      return null;
    });
    await announceStarted(input);
    expect(server.connections()).toBe(3);
    expect(new Set(server.received.map(({ body }) => body.toString())).size).toBe(1);
  });

  it.each<[string, (hangUp: () => void) => Answer | null]>([
    ['an outage', () => json(503, {})],
    [
      'a broken network',
      (hangUp) => {
        hangUp();
        return null;
      },
    ],
  ])('is undelivered after its time: %s', async (_, respond) => {
    const { input, clock } = await guestWith((_received, _count, hangUp) => respond(hangUp));
    await expect(announceStarted(input)).rejects.toMatchObject({
      code: 'started_undelivered',
      fault: 'infra',
    });
    expect(clock.sleeps.length).toBeGreaterThan(5);
  });

  it.each<[string, Answer, string]>([
    ['a newer grant', json(409, { schema_version: 1, reason_code: 'grant_superseded' }), 'grant_superseded'],
    ['an unknown reason', json(409, { reason_code: 'another' }), 'key_denied'],
    ['another body', json(200, { ok: true }), 'key_reply_malformed'],
    ['a redirect', json(308, {}), 'key_denied'],
  ])('is refused at once by %s', async (_, answer, code) => {
    const { input, server } = await guestWith(() => answer);
    expect(await rejectionCode(announceStarted(input))).toBe(code);
    expect(server.connections()).toBe(1);
  });

  it('takes no receipt for another grant', async () => {
    const { input } = await guestWith((received) => receiptFor(received, { grant_id: 'cd'.repeat(16) }));
    expect(await rejectionCode(announceStarted(input))).toBe('key_reply_mismatch');
  });
});
