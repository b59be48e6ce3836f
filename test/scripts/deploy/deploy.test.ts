import { describe, expect, it } from 'vitest';
import { composeHash } from '../../../compose/app-compose.ts';
import { type Code, EvaluatorError } from '../../../guest/errors.ts';
import { deploy } from '../../../scripts/deploy/deploy.ts';
import type { Order } from '../../../scripts/deploy/order.ts';
import { connectPhala } from '../../../scripts/deploy/phala.ts';
import { parseUsd } from '../../../scripts/deploy/usd.ts';
import type { Word } from '../../../scripts/deploy/verdict.ts';
import {
  API_KEY,
  type CloudDouble,
  type CloudRequest,
  type Misbehaviour,
  startCloudDouble,
} from '../../support/cloud-double.ts';
import { planned } from '../../support/deployment.ts';
import { rejectionCode } from '../../support/throws.ts';

const word = (state: string): Word => ({ state, reasonCode: null, scoreF64be: null });
const STAGE = `${JSON.stringify({ level: 30, time: 1, event: 'stage', stage: 'run', mark: 'begin' })}\n`;

interface Setting {
  misbehave?: Misbehaviour;
  /** What the challenge says, look by look; the last one stays. */
  words?: (Word | null)[];
  order?: Partial<Order>;
  callTimeoutMs?: number;
  apiKey?: string;
  signal?: AbortSignal;
  before?: (cloud: CloudDouble) => void;
}

/** A deployment at the double, by a clock that only sleeping moves. */
async function start(setting: Setting) {
  const cloud = await startCloudDouble(setting.misbehave);
  setting.before?.(cloud);
  const { composed, values, appCompose } = planned();
  const words = [...(setting.words ?? [word('prepared'), word('started'), word('accepted')])];
  const events: unknown[] = [];
  const created: bigint[] = [];
  let nowMs = 0;
  const order: Order = {
    composed,
    appCompose,
    composeHash: composeHash(appCompose),
    envNames: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
    name: 'cvm-evaluator-eval-0123456789abcdef',
    instanceType: 'tdx.small',
    osImage: 'dstack-0.5.9',
    diskGb: 20,
    kmsSigner: cloud.kmsSigner,
    maxHourly: parseUsd('0.06') ?? 0n,
    timeoutMs: 20_000,
    values,
    awaited: { role: 'eval', url: 'https://challenge.invalid/run', token: '', caPem: null, evalRunId: null },
    ...setting.order,
  };
  const ended = deploy(order, {
    cloud: connectPhala({
      apiKey: setting.apiKey ?? API_KEY,
      apiUrl: cloud.apiUrl,
      callTimeoutMs: setting.callTimeoutMs ?? 60_000,
    }),
    ask: async () => (words.length > 1 ? words.shift() : words[0]) ?? null,
    clock: {
      nowMs: () => nowMs,
      sleep: async (ms) => {
        nowMs += ms;
      },
    },
    show: (event) => events.push(event),
    signal: setting.signal ?? new AbortController().signal,
    beforeCreation: (hourly) => created.push(hourly),
  });
  return { cloud, ended, events, created, values };
}

/** Whatever happened: no variable went anywhere but encrypted. */
function expectNoSecret(cloud: CloudDouble, values: Record<string, string>): void {
  for (const { path, headers, body } of cloud.received) {
    const all = path + JSON.stringify(headers) + body.toString('latin1');
    for (const value of Object.values(values)) expect(all).not.toContain(value);
  }
}

const posts = (cloud: CloudDouble, path: string) =>
  cloud.received.filter((request) => request.method === 'POST' && request.path === path);

const on =
  (method: string, path: RegExp, reply: Misbehaviour): Misbehaviour =>
  (request, cloud) =>
    request.method === method && path.test(request.path) ? reply(request, cloud) : 'go on';
const always =
  (status: number, body: unknown = { detail: 'no' }): Misbehaviour =>
  () => ({ status, body });

const priced =
  (hourlyRate: string) =>
  (cloud: CloudDouble): void => {
    cloud.hourlyRate = hourlyRate;
  };
const vmState =
  (state: Partial<CloudDouble['state']>) =>
  (cloud: CloudDouble): void => {
    Object.assign(cloud.state, state);
  };
const log =
  (text: string) =>
  (cloud: CloudDouble): void => {
    cloud.log.text = Buffer.from(text);
  };

const CREATE = /^\/cvms$/;
const LIST = /^\/cvms\/paginated/;
const VM = /^\/cvms\/[0-9a-f]{32}$/;

describe('deploy', () => {
  it('creates what was rendered, hands over the variables encrypted, and deletes the VM', async () => {
    const { cloud, ended, created, values, events } = await start({
      before: log(`${STAGE}RESULT={"a":1}\n`),
    });
    const { word: last, resultLine } = await ended;
    expect(last.state).toBe('accepted');
    expect(resultLine?.toString()).toBe('{"a":1}');
    expect(created).toEqual([58_000_000n]);
    expect(cloud.decrypted()).toEqual(values);
    expect(cloud.vms.size).toBe(0);
    expectNoSecret(cloud, values);
    expect(events).toContainEqual({ event: 'stage', stage: 'run', mark: 'begin' });
    const compose = (
      JSON.parse(posts(cloud, '/cvms/provision')[0]?.body.toString() ?? '') as {
        compose_file: unknown;
      }
    ).compose_file;
    expect(compose).toMatchObject({ tproxy_enabled: false, gateway_enabled: false });
    expect(cloud.received.filter(({ path }) => path.startsWith('/logs/'))[0]?.headers).not.toHaveProperty(
      'x-api-key',
    );
  });

  it('leaves VMs of others alone, of the same app or of the same name', async () => {
    const { cloud, ended } = await start({
      misbehave: on('GET', /^\/cvms\/paginated/, (_, double) => {
        const [ours] = [...double.vms.values()];
        if (!ours || double.vms.size > 1) return 'go on';
        double.vms.set('e'.repeat(32), { ...ours, uuid: 'e'.repeat(32), name: 'cvm-evaluator-eval-other' });
        double.vms.set('f'.repeat(32), { ...ours, uuid: 'f'.repeat(32), appId: 'd'.repeat(40) });
        return 'go on';
      }),
    });
    await ended;
    expect([...cloud.vms.keys()]).toEqual(['e'.repeat(32), 'f'.repeat(32)]);
    expect(cloud.received.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
  });

  // Each ends before anything was created: not one POST /cvms.
  it.each<[string, Setting, Code]>([
    ['a price above the cap', { before: priced('0.0600001') }, 'deploy_price_above_cap'],
    ['a price of zero', { before: priced('0') }, 'cloud_reply_malformed'],
    ['a price in words', { before: priced('free') }, 'cloud_reply_malformed'],
    ['a size that is not sold', { order: { instanceType: 'tdx.large' } }, 'deploy_price_unknown'],
    [
      'a size that is another shape',
      {
        misbehave: on(
          'GET',
          /instance-types/,
          always(200, {
            result: [{ items: [{ id: 'tdx.small', vcpu: 2, memory_mb: 2048, hourly_rate: '0.05' }] }],
          }),
        ),
      },
      'deploy_offer_mismatch',
    ],
    [
      'two prices for one size',
      {
        misbehave: on(
          'GET',
          /instance-types/,
          always(200, {
            result: [0, 1].map(() => ({
              items: [{ id: 'tdx.small', vcpu: 1, memory_mb: 2048, hourly_rate: '0.05' }],
            })),
          }),
        ),
      },
      'cloud_reply_malformed',
    ],
    [
      'another compose hash',
      {
        misbehave: on(
          'POST',
          /provision/,
          always(200, {
            app_id: 'a'.repeat(40),
            compose_hash: 'b'.repeat(64),
            kms_id: 'kms',
          }),
        ),
      },
      'deploy_compose_changed',
    ],
    [
      'no KMS',
      {
        misbehave: on(
          'POST',
          /provision/,
          always(200, { app_id: 'a'.repeat(40), compose_hash: 'b'.repeat(64) }),
        ),
      },
      'cloud_reply_malformed',
    ],
    [
      'another KMS than the named one',
      { order: { kmsSigner: `02${'1'.repeat(64)}` } },
      'deploy_env_key_invalid',
    ],
    [
      'a key with the signature of another app',
      {
        misbehave: (request, cloud) =>
          cloud.received.length > 0 && /pubkey/.test(request.path)
            ? { status: 200, body: { public_key: 'c'.repeat(64), signature: 'd'.repeat(130) } }
            : 'go on',
      },
      'deploy_env_key_invalid',
    ],
    [
      'no signature',
      { misbehave: on('GET', /pubkey/, always(200, { public_key: 'c'.repeat(64) })) },
      'cloud_reply_malformed',
    ],
    ['a wrong API key', { apiKey: 'phak_wrong' }, 'cloud_unauthorized'],
    ['403', { misbehave: on('POST', /provision/, always(403)) }, 'cloud_unauthorized'],
    ['429', { misbehave: on('POST', /provision/, always(429)) }, 'cloud_rate_limited'],
    ['500', { misbehave: on('POST', /provision/, always(500)) }, 'cloud_unavailable'],
    [
      '422',
      { misbehave: on('POST', /provision/, always(422, { detail: [{ msg: 'no nodes' }] })) },
      'cloud_refused',
    ],
    [
      'bad JSON',
      { misbehave: on('POST', /provision/, () => ({ status: 200, raw: '{"app_id":' })) },
      'cloud_reply_malformed',
    ],
    [
      'a key twice',
      { misbehave: on('POST', /provision/, () => ({ status: 200, raw: '{"app_id":1,"app_id":2}' })) },
      'cloud_reply_malformed',
    ],
    [
      '9 MiB',
      {
        misbehave: on('GET', /instance-types/, () => ({
          status: 200,
          raw: Buffer.alloc(9 * 1024 * 1024, 0x20),
        })),
      },
      'cloud_reply_malformed',
    ],
    [
      'a redirect',
      {
        misbehave: on('GET', /instance-types/, () => ({
          status: 307,
          raw: '',
          location: '/api/v1/elsewhere',
        })),
      },
      'cloud_unreachable',
    ],
    ['no reply', { misbehave: on('POST', /provision/, () => 'cut') }, 'cloud_unreachable'],
    [
      'a slow reply',
      { misbehave: on('GET', /instance-types/, () => 'hang'), callTimeoutMs: 1_000 },
      'cloud_unreachable',
    ],
    ['a run that is closed', { words: [word('expired')] }, 'deploy_not_planned'],
    ['a challenge that does not answer', { words: [null] }, 'challenge_unreachable'],
  ])('creates nothing after %s', async (_, setting, code) => {
    const { cloud, ended, values } = await start(setting);
    expect(await rejectionCode(ended)).toBe(code);
    expect(posts(cloud, '/cvms')).toEqual([]);
    expect(cloud.received.some(({ path }) => path === '/elsewhere')).toBe(false);
    expectNoSecret(cloud, values);
  });

  const running = [word('prepared'), word('started')];

  // Each ends with the VM gone, whatever there was of it.
  it.each<[string, Setting, Code]>([
    ['a creation that is refused', { misbehave: on('POST', CREATE, always(400)) }, 'cloud_refused'],
    ['a creation that fails', { misbehave: on('POST', CREATE, always(500)) }, 'cloud_unavailable'],
    [
      'a creation that fails half-way',
      {
        misbehave: on('POST', CREATE, ({ body }, cloud) => {
          cloud.make(body);
          return { status: 502, raw: '<html>' };
        }),
      },
      'cloud_unavailable',
    ],
    [
      'a creation whose reply is lost',
      {
        misbehave: on('POST', CREATE, ({ body }, cloud) => {
          cloud.make(body);
          return 'cut';
        }),
      },
      'cloud_unreachable',
    ],
    [
      'a creation whose reply cannot be read',
      {
        misbehave: on('POST', CREATE, ({ body }, cloud) => {
          cloud.make(body);
          return { status: 200, body: { id: 'x' } };
        }),
      },
      'cloud_reply_malformed',
    ],
    [
      'a VM of another shape',
      {
        misbehave: on('POST', CREATE, ({ body }, cloud) => {
          const { uuid, appId } = cloud.make(body);
          return { status: 200, body: { vm_uuid: uuid, app_id: appId, vcpu: 8, memory: 16_384 } };
        }),
      },
      'deploy_offer_mismatch',
    ],
    [
      'a VM that does not boot',
      { words: running, before: vmState({ boot_error: 'init-script: swap is on' }) },
      'deploy_vm_failed',
    ],
    ['a VM that stops', { words: running, before: vmState({ status: 'exited' }) }, 'deploy_vm_failed'],
    ['a guest that is stuck', { words: running, before: log(STAGE) }, 'deploy_timeout'],
    [
      'a guest that fails',
      { words: running, before: log('{"event":"error","code":"plan_expired","message":"plan: expired"}\n') },
      'deploy_guest_failed',
    ],
    [
      'a log that says accepted',
      { words: running, before: log('accepted\n{"event":"receipt"}\n') },
      'deploy_timeout',
    ],
    [
      'a cloud that fails from then on',
      { words: running, misbehave: on('GET', /composition|state$/, always(500)) },
      'deploy_timeout',
    ],
    [
      'a log at an address of the operator’s network',
      {
        words: running,
        misbehave: on('GET', /composition/, (_request, cloud) => ({
          status: 200,
          body: {
            containers: [
              {
                image: planned().composed.imageRef,
                log_endpoint: `http://169.254.169.254/${cloud.vms.size}`,
              },
            ],
          },
        })),
      },
      'deploy_timeout',
    ],
  ])('deletes the VM after %s', async (_, setting, code) => {
    const { cloud, ended, values } = await start(setting);
    expect(await rejectionCode(ended)).toBe(code);
    expect([...cloud.vms.values()]).toEqual([]);
    expectNoSecret(cloud, values);
  });

  it('believes the challenge when the guest has ended since', async () => {
    const { ended, cloud } = await start({
      words: [word('prepared'), word('rejected')],
      before: (double) => {
        double.state.status = 'exited';
        double.log.text = Buffer.from('{"event":"error","code":"result_refused","message":"x"}\n');
      },
    });
    expect((await ended).word.state).toBe('rejected');
    expect(cloud.vms.size).toBe(0);
  });

  it('waits while the challenge judges, though the VM has ended', async () => {
    const { ended } = await start({
      words: [word('prepared'), word('received'), word('parked'), word('accepted')],
      before: vmState({ status: 'exited' }),
    });
    expect((await ended).word.state).toBe('accepted');
  });

  it('deletes the VM when it is interrupted', async () => {
    const stop = new AbortController();
    const reason = new EvaluatorError('run_aborted', 'ended by SIGINT');
    const { cloud, ended } = await start({
      words: running,
      signal: stop.signal,
      misbehave: on('GET', /state$/, () => {
        stop.abort(reason);
        return 'go on';
      }),
    });
    await expect(ended).rejects.toBe(reason);
    expect(cloud.vms.size).toBe(0);
  });

  it('creates nothing once it is interrupted', async () => {
    const stop = new AbortController();
    const { cloud, ended } = await start({
      signal: stop.signal,
      misbehave: on('GET', /pubkey/, () => {
        stop.abort(new EvaluatorError('run_aborted', 'ended by SIGINT'));
        return 'go on';
      }),
    });
    expect(await rejectionCode(ended)).toBe('run_aborted');
    expect(posts(cloud, '/cvms')).toEqual([]);
  });
});

describe('what is still paid for', () => {
  const outcome = async (setting: Setting) => {
    const { cloud, ended, events } = await start(setting);
    const error: unknown = await ended.then(
      () => null,
      (cause: unknown) => cause,
    );
    return { cloud, error, events };
  };

  it.each<[string, Misbehaviour]>([
    ['a refused deletion', on('DELETE', VM, always(409))],
    ['a deletion that says 200 and does nothing', on('DELETE', VM, always(200, {}))],
    ['a deletion that finds nothing, though the VM is listed', on('DELETE', VM, always(404))],
    ['a list that leaves VMs out', on('GET', LIST, always(200, { items: [], total: 1, pages: 1 }))],
    ['a list of another shape', on('GET', LIST, always(200, []))],
  ])('is named after %s', async (_, misbehave) => {
    const { error, cloud } = await outcome({ misbehave });
    expect(error).toMatchObject({ code: 'deploy_not_deleted' });
    const message = String(error);
    expect(message).toContain('cvm-evaluator-eval-0123456789abcdef');
    expect(message).toContain('$0.058 PER HOUR');
    for (const id of cloud.vms.keys()) expect(message).toContain(id);
  });

  it('comes after the failure that was before it, which is shown', async () => {
    const { error, events } = await outcome({
      before: vmState({ status: 'exited' }),
      words: [word('prepared'), word('started')],
      misbehave: on('DELETE', VM, always(500)),
    });
    expect(error).toMatchObject({ code: 'deploy_not_deleted' });
    expect(events).toContainEqual(expect.objectContaining({ event: 'error', code: 'deploy_vm_failed' }));
  });

  it('is nothing once a deletion that failed twice went through', async () => {
    let failures = 2;
    const { error, cloud } = await outcome({
      misbehave: on('DELETE', VM, () => (failures-- > 0 ? { status: 503, body: {} } : 'go on')),
    });
    expect(error).toBeNull();
    expect(cloud.vms.size).toBe(0);
  });

  it('is found on a list that shows a silent creation late', async () => {
    let body: CloudRequest['body'] | null = null;
    let looks = 0;
    const { error, cloud } = await outcome({
      misbehave: (request, double) => {
        if (request.method === 'POST' && CREATE.test(request.path)) {
          body = request.body;
          return 'cut';
        }
        if (LIST.test(request.path) && body && ++looks === 3) double.make(body);
        return 'go on';
      },
    });
    expect(error).toMatchObject({ code: 'cloud_unreachable' });
    expect(cloud.received.some(({ method }) => method === 'DELETE')).toBe(true);
    expect(cloud.vms.size).toBe(0);
  });
});
