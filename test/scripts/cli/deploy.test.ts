import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { composeHash } from '../../../compose/app-compose.ts';
import { encodeResult } from '../../../guest/wire/result.ts';
import {
  API_KEY,
  type CloudDouble,
  type Misbehaviour,
  startCloudDouble,
} from '../../support/cloud-double.ts';
import {
  IMAGE,
  KEY_PROVIDER_ID,
  MODEL_KEY,
  type Planned,
  planned,
  RUN_TOKEN,
} from '../../support/deployment.ts';
import { type Ended, evaluator, startEvaluator } from '../../support/evaluator.ts';
import { serverIdentity } from '../../support/key-server.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { resultFor, testPlatform } from '../../support/valid-result.ts';

const scratch = scratchFolder();
const SCORE = '3fe0000000000000';

interface Stage {
  cloud: CloudDouble;
  order: Planned;
  args: string[];
  env: Record<string, string>;
  out: string;
}

/** The state of a run over TLS: `states` one after the other, the last one stays. */
async function startChallenge(states: string[]): Promise<{ url: string; caPem: string }> {
  const { certificatePem, keyPem, caPem } = await serverIdentity('127.0.0.1');
  const server = createServer({ cert: certificatePem, key: keyPem }, (request, response) => {
    const isKnown =
      request.headers.authorization === `Bearer ${RUN_TOKEN}` &&
      request.url === '/evaluation/v1/runs/run-001';
    const state = states.length > 1 ? states.shift() : states[0];
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ state, reason_code: null, score_f64be: state === 'accepted' ? SCORE : null }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, caPem };
}

/** A cloud, a challenge and the command line that deploys at both. */
async function stage(states: string[], misbehave?: Misbehaviour): Promise<Stage> {
  const [cloud, challenge] = await Promise.all([startCloudDouble(misbehave), startChallenge(states)]);
  const order = planned({
    server_ca_pem: challenge.caPem,
    result: { url: `${challenge.url}/evaluation/v1/runs/run-001/result` },
  });
  const { planRoot } = order.composed;
  const folder = mkdtempSync(join(scratch, 'deploy-'));
  const out = join(folder, 'out');
  const envFile = join(folder, 'variables');
  writeFileSync(
    envFile,
    Object.entries(order.values)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const args = [
    ...[
      'deploy',
      '--image',
      IMAGE,
      '--plan-root',
      planRoot.publicKey,
      '--challenge-id',
      planRoot.challengeId,
    ],
    ...['--key-provider-id', KEY_PROVIDER_ID, '--agent-env', 'MODEL_KEY', '--env-file', envFile],
    ...['--kms-signer', cloud.kmsSigner, '--max-cost', '0.10', '--vm-shape', 'tdx.small', '--out', out],
  ];
  const env = { PHALA_CLOUD_API_KEY: API_KEY, PHALA_CLOUD_API_PREFIX: cloud.apiUrl };
  return { cloud, order, args, env, out };
}

function expectNoSecret({ stdout, stderr }: Ended, { order }: Stage): void {
  for (const secret of [API_KEY, RUN_TOKEN, MODEL_KEY, order.values.EVAL_PLAN ?? ''])
    expect(stdout + stderr).not.toContain(secret);
}

describe('evaluator deploy', () => {
  it('ends with 0, the RESULT and no VM once the challenge has accepted', async () => {
    const here = await stage(['prepared', 'accepted']);
    const platform = await testPlatform();
    const { plan } = here.order;
    const result = resultFor(platform, plan);
    result.score_record.final.score_f64be = SCORE;
    const bytes = encodeResult(result);
    here.cloud.log.text = Buffer.from(
      `{"event":"stage","stage":"emit","mark":"begin"}\n\u001b[2Jnoise\nRESULT=${bytes.toString()}\n`,
    );
    // The client's own debug output must not have the key either.
    const ended = await evaluator([...here.args, '--json'], { ...here.env, DEBUG: 'phala::*' });
    expect(ended.stderr).toContain('{"event":"stage","stage":"emit","mark":"begin"}');
    expect(ended.stderr).not.toContain('\u001b[2J');
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.stdout)).toEqual({
      mode: 'real',
      role: 'eval',
      vm: expect.stringMatching(/^cvm-evaluator-eval-[0-9a-f]{16}$/),
      compose_hash: composeHash(here.order.appCompose),
      state: 'accepted',
      reason_code: null,
      score: 0.5,
      result: join(here.out, 'result.json'),
    });
    expect(readFileSync(join(here.out, 'result.json'))).toEqual(bytes);
    expect(readFileSync(join(here.out, 'app-compose.json'))).toEqual(here.order.appCompose);
    expect(here.cloud.decrypted()).toEqual(here.order.values);
    expect(here.cloud.vms.size).toBe(0);
    expectNoSecret(ended, here);
  });

  it('ends with 1 after a rejection, without a RESULT that the log made up', async () => {
    const here = await stage(['prepared', 'rejected']);
    here.cloud.log.text = Buffer.from('RESULT={"forged":true}\n');
    const ended = await evaluator(here.args, here.env);
    expect(ended.code).toBe(1);
    expect(ended.stdout).toBe('rejected; RESULT was not in the public log\n');
    expect(readdirSync(here.out).sort()).toEqual(['app-compose.json', 'deployment.json']);
    expect(here.cloud.vms.size).toBe(0);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('deletes the VM when %s comes in the middle', async (signal) => {
    let again = (): void => undefined;
    const here = await stage(['prepared', 'started'], ({ method }) => {
      // An impatient second one, while it deletes.
      if (method === 'DELETE') again();
      return 'go on';
    });
    here.cloud.log.text = Buffer.from('{"event":"stage","stage":"run","mark":"begin"}\n');
    const run = startEvaluator(here.args, here.env);
    again = () => run.child.kill(signal);
    await run.says(/"stage":"run"/);
    expect(here.cloud.vms.size).toBe(1);
    run.child.kill(signal);
    const ended = await run.ended;
    expect(ended.code).toBe(signal === 'SIGINT' ? 130 : 143);
    expect(here.cloud.vms.size).toBe(0);
    expectNoSecret(ended, here);
  });

  it('leaves nothing of a deployment that was refused', async () => {
    const here = await stage(['prepared']);
    here.cloud.hourlyRate = '0.11';
    const ended = await evaluator(here.args, here.env);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain('[deploy_price_above_cap]');
    expect(() => readdirSync(here.out)).toThrow('ENOENT');
  });

  it('says what a dry run would do, and asks for the price alone', async () => {
    const here = await stage(['prepared']);
    const ended = await evaluator([...here.args, '--dry-run', '--json'], here.env);
    expect(ended.code).toBe(0);
    expect(JSON.parse(ended.stdout)).toMatchObject({
      mode: 'dry-run',
      compose_hash: composeHash(here.order.appCompose),
      variables: { names: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'], missing: [] },
      price: { hourly: '$0.058', until_timeout: '$0.116' },
    });
    expect(here.cloud.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /instance-types',
    ]);
    expectNoSecret(ended, here);
  });

  it('makes a dry run without a key, a cap or variables', async () => {
    const args = ['--image', IMAGE, '--plan-root', 'b'.repeat(64), '--challenge-id', 'c', '--role', 'review'];
    const ended = await evaluator(['deploy', ...args, '--dry-run'], { PHALA_CLOUD_API_KEY: '' });
    expect(ended.code).toBe(0);
    expect(ended.stdout).toContain('unknown without PHALA_CLOUD_API_KEY');
    expect(ended.stdout).toContain('missing      OPENROUTER_API_KEY');
  });

  it('asks nobody before it knows what the plan orders', async () => {
    const here = await stage(['prepared']);
    const ended = await evaluator([...here.args, '--vm-shape', 'tdx.xlarge'], here.env);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain('[deploy_not_planned]');
    expect(here.cloud.received).toEqual([]);
    expectNoSecret(ended, here);
  });
});
