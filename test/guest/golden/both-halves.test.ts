import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectGuestAgent } from '../../../guest/attest/dstack.ts';
import { requestKeys } from '../../../guest/golden/key-release.ts';
import { announceStarted } from '../../../guest/golden/started.ts';
import { taskKey } from '../../../guest/tasks/task-key.ts';
import { startGuestAgent } from '../../../simulator/agent-api.ts';
import type { CertForm } from '../../../simulator/ra-tls.ts';
import { quickClock, testIdentity, testSteps } from '../../support/golden-guest.ts';
import { CACHE_ID, GOLDEN_KEY, keyChallenge } from '../../support/key-challenge.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';
import { RUN_TOKEN } from '../../support/valid-result.ts';

/** The challenge's own server, and a guest on the machine that it expects. */
async function bothHalves(certForm: CertForm = 'versioned') {
  const challenge = await keyChallenge();
  const folder = scratchFolder();
  const socketPath = join(folder, 'dstack.sock');
  const { platform, plan } = challenge;
  const machine = await startGuestAgent({ socketPath, platform, faults: [], certForm });
  onTestFinished(async () => {
    await machine.close();
    await challenge.close();
  });
  if (plan.key_release === null) throw new Error('the plan asks for keys');
  const agent = connectGuestAgent({ socketPath, deadlineMs: 20_000 });
  const exchange = {
    agent,
    identity: await testIdentity(agent, plan),
    plan,
    keyRelease: plan.key_release,
    runToken: RUN_TOKEN,
    steps: testSteps().steps,
    clock: quickClock(),
    retryForMs: 10_000,
    signal: new AbortController().signal,
  };
  return { challenge, exchange, plan };
}

describe('guest and challenge', () => {
  it.each<CertForm>(['versioned', 'quote-and-log'])(
    'agree with certificates of the form %s',
    async (form) => {
      const { exchange, plan } = await bothHalves(form);
      const released = await requestKeys(exchange);
      expect(released.task_keys).toEqual(
        plan.tasks.map(({ task_id, task_digest }) => ({
          task_id,
          key: taskKey(GOLDEN_KEY, CACHE_ID, task_digest).toString('hex'),
        })),
      );
      const started = await announceStarted({ ...exchange, grantId: released.grant_id });
      expect(started.grant_id).toBe(released.grant_id);
      // Lost on its way, the receipt is the same when asked for again.
      expect(await announceStarted({ ...exchange, grantId: released.grant_id })).toEqual(started);
      expect(await rejectionCode(requestKeys(exchange))).toBe('run_started');
    },
  );

  it('a second guest of the same run ends the first one', async () => {
    const { exchange } = await bothHalves();
    const first = await requestKeys(exchange);
    const second = { ...exchange, identity: await testIdentity(exchange.agent, exchange.plan) };
    const newer = await requestKeys(second);
    const late = announceStarted({ ...exchange, grantId: first.grant_id });
    expect(await rejectionCode(late)).toBe('grant_superseded');
    await announceStarted({ ...second, grantId: newer.grant_id });
  });

  it('a wrong token and an exhausted run are told apart', async () => {
    const { exchange, plan } = await bothHalves();
    expect(await rejectionCode(requestKeys({ ...exchange, runToken: 'wrong' }))).toBe('run_token_invalid');
    for (let grant = 0; grant < plan.max_grants; grant++) await requestKeys(exchange);
    expect(await rejectionCode(requestKeys(exchange))).toBe('grants_exhausted');
  });
});
