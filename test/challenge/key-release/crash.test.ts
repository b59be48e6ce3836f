import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { standingScore } from '../../../challenge/ledger/standing.ts';
import { encodeResult } from '../../../guest/wire/result.ts';
import type { Platform } from '../../../simulator/platform.ts';
import {
  type ChallengeProcess,
  call,
  eventually,
  type HttpReply,
  MAIN,
  spawnChallenge,
  type TestConfig,
} from '../../support/challenge-process.ts';
import { guestOf, livePlatform, sealedConfig } from '../../support/key-challenge.ts';
import { askForKeys, type Guest, type Reply, sayStarted } from '../../support/key-client.ts';
import { withRegisters } from '../../support/patched-platform.ts';
import { resultFor, scoreRecord } from '../../support/valid-result.ts';

const CRASHING = new URL('../../support/crashing-challenge.ts', import.meta.url).pathname;
const MAX_GRANTS = 2;
const ONE = '3ff0000000000000';

let platform: Platform;
beforeAll(async () => {
  platform = await livePlatform();
});
const running: ChallengeProcess[] = [];
afterEach(async () => {
  for (const { child, kill } of running.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) await kill('SIGKILL');
  }
});
async function start(config: TestConfig, script = MAIN, args: readonly string[] = []) {
  const started = await spawnChallenge(config, script, args);
  running.push(started);
  return started;
}
async function died({ child }: ChallengeProcess): Promise<void> {
  if (child.signalCode === null) await once(child, 'exit');
  expect(child.signalCode).toBe('SIGKILL');
}
async function withLedger<T>(config: TestConfig, look: (ledger: SqliteLedger) => T): Promise<T> {
  const ledger = new SqliteLedger(join(config.state_dir, 'ledger.sqlite'));
  try {
    return look(ledger);
  } finally {
    ledger.close();
  }
}

/** What a guest holds, whatever becomes of the challenge. */
interface Held {
  keys: string[];
  started: Buffer | null;
  /** Made once: its bytes are what counts. */
  result: Buffer | null;
  receipt: Buffer | null;
}
const nothing = (): Held => ({ keys: [], started: null, result: null, receipt: null });

const broken: Reply = { status: 0, json: {}, body: Buffer.alloc(0) };
const orBroken = <T extends Reply | HttpReply>(reply: Promise<T>): Promise<T | typeof broken> =>
  reply.catch(() => broken);

async function postResult({ plan, token, ca }: Guest, body: Buffer) {
  return orBroken(call(plan.result.url, { method: 'POST', token, ca, body }));
}

/** One life of a guest: asks for keys, starts, delivers, and stops where nobody answers. */
async function live(guest: Guest, held: Held): Promise<'delivered' | 'cut off' | { refused: unknown }> {
  const asked = await askForKeys(guest).catch(() => ({ ...broken, keys: null }));
  if (asked.status === 0) return 'cut off';
  if (!asked.keys) return { refused: asked.json.reason_code };
  const grantId = asked.keys.grant_id;
  held.keys.push(grantId);
  return deliver(guest, grantId, held);
}

async function deliver(guest: Guest, grantId: string, held: Held) {
  const started = await orBroken(sayStarted(guest, grantId));
  if (started.status === 0) return 'cut off';
  expect(started.status).toBe(200);
  if (held.started) expect(started.body).toEqual(held.started);
  held.started = started.body;
  const record = { ...scoreRecord(guest.plan), grant_id: grantId };
  held.result ??= encodeResult(resultFor(platform, guest.plan, record));
  const posted = await postResult(guest, held.result);
  if (posted.status === 0) return 'cut off';
  expect([200, 202]).toContain(posted.status);
  if (held.receipt) expect(posted.body).toEqual(held.receipt);
  held.receipt = posted.body;
  return 'delivered';
}

const stateOf = async ({ plan, token, ca }: Guest) => {
  const url = plan.result.url.replace(/\/result$/, '');
  return (await call(url, { method: 'GET', token, ca })).json;
};

/** What must hold after any crash. */
async function verifyInvariants(config: TestConfig, evalRunId: string, held: Held): Promise<void> {
  await withLedger(config, (ledger) => {
    const granted = ledger.grants(evalRunId).map(({ grantId }) => grantId);
    expect(granted.length).toBeLessThanOrEqual(MAX_GRANTS);
    // No key without its grant, no grant without its attempt, no attempt with two.
    for (const key of held.keys) expect(granted).toContain(key);
    const attempts = ledger.attempts(evalRunId).filter(({ outcome }) => outcome === 'granted');
    expect(attempts).toHaveLength(granted.length);
    if (held.started) expect(ledger.started(evalRunId)?.grantId).toBe(granted.at(-1));
    if (held.receipt) expect(ledger.receipt(evalRunId)).not.toBeNull();
    const run = ledger.run(evalRunId);
    if (run?.scoreF64be) expect(ledger.started(evalRunId)?.grantId).toBe(granted.at(-1));
    const moves = ledger.history(evalRunId).map(({ to }) => to);
    expect(moves.filter((to) => to === 'accepted').length).toBeLessThanOrEqual(1);
  });
}

describe.each(['before', 'after'] as const)('killed %s the commit of', (moment) => {
  it.each(['beginAttempt', 'grant', 'start', 'receive', 'accept'] as const)('%s', async (method) => {
    const config = await sealedConfig(platform);
    const held = nothing();
    const first = await start(config, CRASHING, [method, moment]);
    const guest = await guestOf(first, platform);
    const end = await live(guest, held);
    expect(end).toBe(method === 'accept' ? 'delivered' : 'cut off');
    await died(first);
    await verifyInvariants(config, first.evalRunId, held);
    if (method === 'accept' && moment === 'after') {
      await withLedger(config, (ledger) => expect(ledger.run(first.evalRunId)?.scoreF64be).toBe(ONE));
      return expect(start(config)).rejects.toThrow(/agent_already_scored/);
    }

    const second = await start(config);
    expect(second.evalRunId).toBe(first.evalRunId);
    const grantId = held.keys[0];
    // A guest that lives on repeats what got no answer; one without keys asks anew, from another connection.
    const then = grantId ? await deliver(guest, grantId, held) : await live(guest, held);
    expect(then).toBe('delivered');
    await eventually(async () => (await stateOf(guest)).state === 'accepted');
    expect(await stateOf(guest)).toMatchObject({ score_f64be: ONE });
    await verifyInvariants(config, first.evalRunId, held);
    await second.kill('SIGTERM');
    await withLedger(config, (ledger) => {
      const expected = method === 'grant' && moment === 'after' ? 2 : 1;
      expect(ledger.grants(first.evalRunId)).toHaveLength(expected);
      expect(ledger.attempts(first.evalRunId).some(({ outcome }) => outcome === 'pending')).toBe(false);
    });
  });

  it('endAttempt', async () => {
    const config = await sealedConfig(platform);
    const first = await start(config, CRASHING, ['endAttempt', moment]);
    const debug = withRegisters(platform, { tdAttributes: '0100001000000000' });
    const rogue = await guestOf(first, debug);
    expect((await orBroken(askForKeys(rogue))).status).toBe(0);
    await died(first);
    const second = await start(config);
    const outcomes = () =>
      withLedger(config, (ledger) => ledger.attempts(first.evalRunId).map(({ outcome }) => outcome));
    // What was not committed did not happen: the denial is lost with the process, and cost nothing.
    expect(await outcomes()).toEqual([moment === 'after' ? 'denied' : 'interrupted']);
    const held = nothing();
    expect(await live(await guestOf(second, platform), held)).toBe('delivered');
    await verifyInvariants(config, first.evalRunId, held);
  });
});

describe('a run that is interrupted', () => {
  it('once it is prepared, before anybody is told of it, is resumed', async () => {
    const config = await sealedConfig(platform);
    await expect(start(config, CRASHING, ['prepare', 'after'])).rejects.toThrow('did not start');
    const { evalRunId } = await start(config);
    expect(await withLedger(config, (ledger) => ledger.run(evalRunId)?.state)).toBe('prepared');
  });

  it('after each of its grants is refused a further one', async () => {
    const config = await sealedConfig(platform);
    const held = nothing();
    let evalRunId = '';
    for (let i = 0; i < MAX_GRANTS; i++) {
      const crashing = await start(config, CRASHING, ['grant', 'after']);
      evalRunId = crashing.evalRunId;
      expect(await live(await guestOf(crashing, platform), held)).toBe('cut off');
      await died(crashing);
    }
    const last = await start(config);
    expect(await live(await guestOf(last, platform), held)).toEqual({ refused: 'grants_exhausted' });
    expect(held.keys).toEqual([]);
    await verifyInvariants(config, evalRunId, held);
  });

  it('after it started closes without a result, and its agent is not run again', async () => {
    const config = await sealedConfig(platform);
    const held = nothing();
    const crashing = await start(config, CRASHING, ['start', 'after']);
    const guest = await guestOf(crashing, platform);
    expect(await live(guest, held)).toBe('cut off');
    await died(crashing);
    const again = await start(config);
    expect(await live(guest, held)).toEqual({ refused: 'run_started' });
    await again.kill('SIGKILL');
    const late = start(config, CRASHING, ['', '', String(config.plan_ttl_ms + 1000)]);
    await expect(late).rejects.toThrow(/agent_no_result/);
    await withLedger(config, (ledger) => {
      const run = ledger.run(crashing.evalRunId);
      expect(run?.state).toBe('no_result');
      expect(run && standingScore(run)).toBe('0000000000000000');
      ledger.reopen(crashing.evalRunId, 'the host lost power', Date.now());
    });
    const reopened = await start(config, CRASHING, ['', '', String(config.plan_ttl_ms + 1000)]);
    expect(reopened.evalRunId).not.toBe(crashing.evalRunId);
  });
});
