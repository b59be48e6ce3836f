import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { taskKey } from '../../../guest/tasks/task-key.ts';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { CACHE_ID, GOLDEN_KEY, type KeyChallenge, keyChallenge } from '../../support/key-challenge.ts';
import { askForKeys, keyPair, sayStarted } from '../../support/key-client.ts';

let challenge: KeyChallenge;
beforeEach(async () => {
  challenge = await keyChallenge();
});
afterEach(() => challenge.close());

describe('an honest guest', () => {
  it.each(['versioned', 'quote-and-log'] as const)(
    'with a certificate of form %s gets the keys of its tasks',
    async (form) => {
      const { platform, plan, ledger } = challenge;
      const guest = await challenge.guest({ pair: await keyPair(platform, plan, { form }) });
      const { status, keys } = await askForKeys(guest);
      expect(status).toBe(200);
      expect(keys?.task_keys).toEqual(
        plan.tasks.map(({ task_id, task_digest }) => ({
          task_id,
          key: taskKey(GOLDEN_KEY, CACHE_ID, task_digest).toString('hex'),
        })),
      );
      const [grant] = ledger.grants('run-1');
      expect(grant).toMatchObject({
        grantId: keys?.grant_id,
        nonce: plan.key_release?.nonce,
        spkiDigest: guest.pair.spkiDigest,
        measurement: platform.measurement,
        appId: platform.appId.toString('hex'),
        instanceId: platform.instanceId.toString('hex'),
      });
      expect(ledger.run('run-1')?.state).toBe('granted');
    },
  );

  it('says that its agents start, and gets the same receipt as often as it says so', async () => {
    const guest = await challenge.guest();
    const grantId = (await askForKeys(guest)).keys?.grant_id ?? '';
    const first = await sayStarted(guest, grantId);
    expect(first.status).toBe(200);
    expect(first.body).toEqual(
      encodeCanonical({
        schema_version: 1,
        eval_run_id: 'run-1',
        grant_id: grantId,
        event: 'started',
        received_at_ms: challenge.ledger.started('run-1')?.receivedAtMs,
      }),
    );
    challenge.clock.skewMs = 7 * 86_400_000;
    expect((await sayStarted(guest, grantId)).body).toEqual(first.body);
  });
});
