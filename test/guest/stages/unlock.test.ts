import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { JournalEvent } from '../../../guest/stages/journal.ts';
import type { Order } from '../../../guest/stages/order.ts';
import { openPlannedCache } from '../../../guest/stages/preflight-plan.ts';
import { unlock } from '../../../guest/stages/unlock.ts';
import { openCache } from '../../../guest/tasks/cache.ts';
import type { ReleasedKeys } from '../../../guest/wire/key-release.ts';
import type { EvalPlan } from '../../../guest/wire/plan.ts';
import type { Platform } from '../../../simulator/platform.ts';
import {
  GRANT_ID,
  goldenMachine,
  json,
  quickClock,
  receiptFor,
  release,
  sealedPlan,
} from '../../support/golden-guest.ts';
import { type Answer, type KeyServer, type Received, startKeyServer } from '../../support/key-server.ts';
import { PLAIN_TASK, writeCache } from '../../support/plain-task.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { writeSealedCache } from '../../support/sealed-cache.ts';
import { rejectionCode } from '../../support/throws.ts';
import { RUN_TOKEN, signedPlan } from '../../support/valid-result.ts';

const FILES = { ...PLAIN_TASK, 'tests/test.sh': 'the hidden test\n' };
const TASKS = ['task-a', 'task-b'];

type Respond = (received: Received, keys: ReleasedKeys) => Answer;

const honest: Respond = (received, keys) =>
  received.path.endsWith('/started') ? receiptFor(received) : release(received, keys);

/** The fields of an order that unlock looks at. */
async function orderOf(plan: EvalPlan, directory: string): Promise<Order> {
  const cache = await openCache(directory);
  const tasks = plan.tasks.map(({ task_id }) => ({
    trial: { taskId: task_id },
    tests: () => cache.tests(task_id),
  }));
  return { plan, cache, tasks } as unknown as Order;
}

async function sealedRun(respond: Respond) {
  const { agent, platform } = await goldenMachine();
  const directory = join(scratchFolder(), 'cache');
  const taskKeys = await writeSealedCache(directory, Object.fromEntries(TASKS.map((name) => [name, FILES])));
  const keys: ReleasedKeys = {
    schema_version: 1,
    grant_id: GRANT_ID,
    task_keys: [...taskKeys].map(([task_id, key]) => ({ task_id, key: key.toString('hex') })),
  };
  const server = await startKeyServer((received) => respond(received, keys));
  const { plan } = sealedPlan(platform, server);
  const journal: JournalEvent[] = [];
  const host = {
    inputs: { planBytes: Buffer.alloc(0), runToken: RUN_TOKEN, agentEnv: {} },
    connectAgent: () => agent,
    clock: quickClock(),
    journal: { write: (event: JournalEvent) => void journal.push(event) },
    signal: new AbortController().signal,
  };
  return { order: await orderOf(plan, directory), host, journal, keys, server };
}

const paths = ({ received }: KeyServer) => received.map(({ path }) => path.split('/').at(-1));

describe('unlock', () => {
  it('gets the keys, opens everything, says started, and marks each step', async () => {
    const { order, host, journal, server } = await sealedRun(honest);
    const unlocked = await unlock(order, host);
    expect(unlocked.grantId).toBe(GRANT_ID);
    for (const task of unlocked.tasks)
      expect(await task.tests()).toEqual([
        { path: 'tests/test.sh', bytes: Buffer.from('the hidden test\n'), executable: true },
      ]);
    expect(paths(server)).toEqual(['run-1', 'started']);
    expect(new Set(server.received.map(({ spki }) => spki)).size).toBe(1);
    const marks = journal.map((event) => event.event === 'step' && `${event.step} ${event.mark}`);
    const both = (step: string) => [`${step} begin`, `${step} end`];
    expect(marks).toEqual(
      ['tls_key', 'connect', 'quote', 'exchange', 'unseal', 'connect', 'started'].flatMap(both),
    );
  });

  it('writes no key, token or test into the journal', async () => {
    const { order, host, journal, keys } = await sealedRun(honest);
    await unlock(order, host);
    const text = JSON.stringify(journal);
    for (const secret of [RUN_TOKEN, 'hidden', ...keys.task_keys.map(({ key }) => key)])
      expect(text).not.toContain(secret);
  });

  it('does nothing for a plan that asks for no key', async () => {
    const { order, host, journal, server } = await sealedRun(honest);
    const unsealed = { ...order, plan: { ...order.plan, key_release: null } };
    expect(await unlock(unsealed, host)).toEqual({ ...unsealed, grantId: null });
    expect([journal, server.received]).toEqual([[], []]);
  });

  it('does not say started with a key that opens nothing', async () => {
    const swapped: Respond = (received, keys) => {
      const [a, b] = keys.task_keys;
      if (!a || !b) throw new Error('two tasks are sealed');
      const task_keys = [
        { ...a, key: b.key },
        { ...b, key: a.key },
      ];
      return release(received, { ...keys, task_keys });
    };
    const { order, host, server } = await sealedRun(swapped);
    expect(await rejectionCode(unlock(order, host))).toBe('sealed_unopenable');
    expect(paths(server)).toEqual(['run-1']);
  });

  it.each<[string, Answer, string]>([
    ['a newer grant', json(409, { schema_version: 1, reason_code: 'grant_superseded' }), 'grant_superseded'],
    ['an outage', json(503, {}), 'started_undelivered'],
  ])('hands on nothing when started meets %s', async (_, answer, code) => {
    const { order, host } = await sealedRun((received, keys) =>
      received.path.endsWith('/started') ? answer : release(received, keys),
    );
    expect(await rejectionCode(unlock(order, host))).toBe(code);
  });

  it('asks for nothing once the run has ended', async () => {
    const { order, host, server } = await sealedRun(honest);
    const signal = AbortSignal.abort(new Error('ended'));
    await expect(unlock(order, { ...host, signal })).rejects.toThrow('ended');
    expect(server.received).toEqual([]);
  });
});

describe('preflight', () => {
  const SEALED = { url: 'https://127.0.0.1:1/key-release/v1/runs/run-1', nonce: 'n' };

  async function opened(platform: Platform, directory: string, key_release: EvalPlan['key_release']) {
    const { cacheDigest: cache_digest } = await openCache(directory);
    const { plan } = signedPlan(platform, { cache_digest, toolchain_digest: null, key_release });
    return openPlannedCache(plan, directory);
  }

  it('refuses a sealed cache without a key release, and the reverse', async () => {
    const { platform } = await goldenMachine();
    const [sealed, plain] = [join(scratchFolder(), 'sealed'), join(scratchFolder(), 'plain')];
    await writeSealedCache(sealed, { 'task-a': FILES });
    await writeCache(plain, { 'task-a': FILES });
    expect(await rejectionCode(opened(platform, sealed, null))).toBe('cache_sealed');
    expect(await rejectionCode(opened(platform, plain, SEALED))).toBe('cache_not_sealed');
    // The next check is reached where they agree.
    expect(await rejectionCode(opened(platform, sealed, SEALED))).toBe('task_digest_mismatch');
    expect(await rejectionCode(opened(platform, plain, null))).toBe('task_digest_mismatch');
  });
});
