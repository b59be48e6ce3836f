import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectGuestAgent } from '../../../guest/attest/dstack.ts';
import { requestKeys } from '../../../guest/golden/key-release.ts';
import { clientIdentity } from '../../../guest/golden/ra-tls.ts';
import { announceStarted } from '../../../guest/golden/started.ts';
import { createSteps, STEP_DEADLINES_MS } from '../../../guest/golden/steps.ts';
import { taskKey } from '../../../guest/tasks/task-key.ts';
import { startGuestAgent } from '../../../simulator/agent-api.ts';
import type { CertForm } from '../../../simulator/ra-tls.ts';
import { CACHE_ID, GOLDEN_KEY, type KeyChallengeOptions, keyChallenge } from '../../support/key-challenge.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';
import { RUN_TOKEN } from '../../support/valid-result.ts';

/** The guest's own client, on a simulated machine, against the challenge's own server. */
async function meeting(certForm: CertForm, options: KeyChallengeOptions = {}) {
  const challenge = await keyChallenge(options);
  const { platform, plan } = challenge;
  const folder = scratchFolder();
  const socketPath = join(folder, 'dstack.sock');
  const { close } = await startGuestAgent({ socketPath, platform, faults: [], certForm });
  onTestFinished(async () => {
    await close();
    await challenge.close();
  });
  const agent = connectGuestAgent({ socketPath, deadlineMs: 20_000 });
  const { signal } = new AbortController();
  const steps = createSteps({ deadlinesMs: STEP_DEADLINES_MS, mark: () => undefined, signal });
  const keyRelease = plan.key_release;
  if (!keyRelease) throw new Error('a sealed plan');
  const clock = { monotonicMs: () => performance.now(), sleep: async () => undefined };
  const common = { plan, keyRelease, steps, clock, retryForMs: 0, signal, runToken: RUN_TOKEN };
  const identity = await clientIdentity({ agent, plan, steps });
  return { challenge, agent, exchange: { ...common, identity } };
}

describe.each(['versioned', 'quote-and-log'] as const)(
  'guest and challenge, certificates of form %s',
  (form) => {
    it('agree on both exchanges', async () => {
      const { challenge, agent, exchange } = await meeting(form);
      const released = await requestKeys({ ...exchange, agent });
      expect(released.task_keys).toEqual(
        challenge.plan.tasks.map(({ task_id, task_digest }) => ({
          task_id,
          key: taskKey(GOLDEN_KEY, CACHE_ID, task_digest).toString('hex'),
        })),
      );
      const receipt = await announceStarted({ ...exchange, grantId: released.grant_id });
      expect(receipt).toMatchObject({ grant_id: released.grant_id, event: 'started' });
      expect(await announceStarted({ ...exchange, grantId: released.grant_id })).toEqual(receipt);
      expect(challenge.ledger.run('run-1')?.state).toBe('started');
    });
  },
);

it('a denial reaches the guest as its own code', async () => {
  const { challenge, agent, exchange } = await meeting('versioned');
  const wrong = requestKeys({ ...exchange, agent, runToken: 'wrong' });
  expect(await rejectionCode(wrong)).toBe('run_token_invalid');
  const first = await requestKeys({ ...exchange, agent });
  const second = await requestKeys({ ...exchange, agent });
  expect(await rejectionCode(announceStarted({ ...exchange, grantId: first.grant_id }))).toBe(
    'grant_superseded',
  );
  expect(await rejectionCode(requestKeys({ ...exchange, agent }))).toBe('grants_exhausted');
  await announceStarted({ ...exchange, grantId: second.grant_id });
  expect(challenge.log).toEqual([null, null, 'grant_superseded', 'grants_exhausted', null]);
});
