import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { encodeResult } from '../../guest/wire/result.ts';
import {
  type ChallengeProcess,
  call,
  challengeConfig,
  eventually,
  spawnChallenge,
} from '../support/challenge-process.ts';
import { resultFor, testPlatform } from '../support/valid-result.ts';

const running: ChallengeProcess[] = [];
async function start(...args: Parameters<typeof spawnChallenge>): Promise<ChallengeProcess> {
  const started = await spawnChallenge(...args);
  running.push(started);
  return started;
}
afterEach(async () => {
  for (const one of running.splice(0)) if (one.child.exitCode === null) await one.kill('SIGKILL');
});

const livePlatform = () => testPlatform({ nowMs: Date.now() });
const access = ({ runToken, plan }: ChallengeProcess) => ({ token: runToken, ca: plan.server_ca_pem });
const stateOf = (one: ChallengeProcess) =>
  call(`${one.url}/evaluation/v1/runs/${one.evalRunId}`, { method: 'GET', ...access(one) });

describe('the challenge as a process', () => {
  it('prepares a plan, serves the agent, gives a receipt and accepts', async () => {
    const platform = await livePlatform();
    const config = challengeConfig(platform);
    const challenge = await start(config);
    const { plan } = challenge;
    expect(plan.tasks).toHaveLength(2);
    expect(statSync(join(config.out_dir, 'run-token')).mode & 0o777).toBe(0o600);
    expect(statSync(join(config.state_dir, 'plan-root.pem')).mode & 0o777).toBe(0o600);

    const artifact = await call(plan.agent.artifact_url, { method: 'GET', ...access(challenge) });
    expect(artifact.body).toEqual(readFileSync(config.agent_zip_path));

    const body = encodeResult(resultFor(platform, plan));
    const first = await call(plan.result.url, { method: 'POST', body, ...access(challenge) });
    expect(first.status).toBe(202);
    const again = await call(plan.result.url, { method: 'POST', body, ...access(challenge) });
    expect(again.status).toBe(200);
    expect(again.body).toEqual(first.body);

    await eventually(async () => (await stateOf(challenge)).json.state !== 'received');
    expect((await stateOf(challenge)).json).toEqual({
      eval_run_id: plan.eval_run_id,
      state: 'accepted',
      reason_code: null,
      score_f64be: '3ff0000000000000',
    });
  });

  it('killed between receipt and judgement, loses nothing and accepts once', async () => {
    const platform = await livePlatform();
    const config = challengeConfig(platform);
    const hanging = await start(config, new URL('../support/hanging-challenge.ts', import.meta.url).pathname);
    const body = encodeResult(resultFor(platform, hanging.plan));
    const receipt = await call(hanging.plan.result.url, { method: 'POST', body, ...access(hanging) });
    expect(receipt.status).toBe(202);
    expect((await stateOf(hanging)).json.state).toBe('received');
    await hanging.kill('SIGKILL');

    const restarted = await start(config);
    expect(restarted.evalRunId).toBe(hanging.evalRunId);
    await eventually(async () => (await stateOf(restarted)).json.state === 'accepted');
    const again = await call(restarted.plan.result.url, { method: 'POST', body, ...access(restarted) });
    expect(again.status).toBe(200);
    expect(again.body).toEqual(receipt.body);
    await restarted.kill('SIGTERM');

    const ledger = new SqliteLedger(join(config.state_dir, 'ledger.sqlite'));
    expect(ledger.history(restarted.evalRunId).map((entry) => entry.to)).toEqual([
      'prepared',
      'received',
      'accepted',
    ]);
    ledger.close();
  });

  it('ends with 2 and the field when its configuration cannot be used', async () => {
    const platform = await livePlatform();
    const bad = [
      [{ r: 0 }, /config: r:/],
      [{ unknown: 1 }, /unknown/],
      [{ agent_zip_path: '/nowhere.zip' }, /agent_zip_path/],
      [{ tdx_root_pem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }, /TDX root/],
      [{ collateral: {} }, /collateral/],
      [{ select: { n: 4 } }, /4 tasks asked of a cache with 3/],
      [{ ranked: true }, /ranked plan needs a sealed cache/],
    ] as const;
    for (const [overrides, message] of bad) {
      await expect(start(challengeConfig(platform, overrides))).rejects.toThrow(message);
    }
  });
});

it('leaves in out_dir what verify reads', async () => {
  const platform = await livePlatform();
  const config = challengeConfig(platform);
  const { plan } = await start(config);
  const { verify } = await import('../../scripts/cli/verify.ts');
  const out = (name: string) => join(config.out_dir, name);
  writeFileSync(out('result.json'), encodeResult(resultFor(platform, plan)));
  const argv = [
    out('result.json'),
    ...['plan', 'plan-root', 'allowlist', 'collateral'].flatMap((name) => [`--${name}`, out(`${name}.json`)]),
    ...['--root', out('root.pem'), '--mechanism', config.mechanism_path],
  ];
  expect(await verify(argv)).toBe(0);
});
