import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  canonicalAppCompose,
  composeHash,
  type EvalCompose,
  renderAppCompose,
} from '../../compose/app-compose.ts';
import { parseAppCompose, renderComposed } from '../../compose/parse.ts';
import { REVIEW_ENV_NAMES, renderReviewCompose } from '../../compose/review-compose.ts';
import { realTdx } from '../support/real-tdx.ts';
import { codeOf } from '../support/throws.ts';

const COMPOSE: EvalCompose = {
  imageRef: `ghcr.io/owner/evaluator@sha256:${'a'.repeat(64)}`,
  planRoot: { publicKey: 'b'.repeat(64), challengeId: 'chal-1' },
  envNames: ['EVAL_RUN_TOKEN', 'EVAL_PLAN', 'MODEL_KEY'],
  keyProviderId: 'c0ffee',
};
const REVIEW = {
  imageRef: COMPOSE.imageRef,
  planRoot: COMPOSE.planRoot,
  localArguments: [],
  keyProviderId: null,
};

const membersOf = (bytes: Buffer): Record<string, unknown> => JSON.parse(bytes.toString());
const servicesOf = (bytes: Buffer) => parse(String(membersOf(bytes).docker_compose_file)).services;

describe('app-compose', () => {
  it('has every key of spec/06, sorted and compact', () => {
    const bytes = renderAppCompose(COMPOSE);
    const members = membersOf(bytes);
    expect(Object.keys(members)).toEqual(
      [
        'manifest_version',
        'name',
        'runner',
        'docker_compose_file',
        'kms_enabled',
        'gateway_enabled',
        'tproxy_enabled',
        'local_key_provider_enabled',
        'public_logs',
        'public_sysinfo',
        'public_tcbinfo',
        'no_instance_id',
        'secure_time',
        'storage_fs',
        'features',
        'allowed_envs',
        'pre_launch_script',
        'init_script',
        'key_provider_id',
      ].sort(),
    );
    expect(members).toMatchObject({
      manifest_version: 2,
      kms_enabled: true,
      gateway_enabled: false,
      local_key_provider_enabled: false,
      no_instance_id: false,
      public_tcbinfo: true,
      storage_fs: 'ext4',
      key_provider_id: 'c0ffee',
      allowed_envs: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
    });
    expect(bytes.toString()).toBe(JSON.stringify(members));
  });

  it('leaves out a key provider that nobody named', () => {
    expect(renderAppCompose({ ...COMPOSE, keyProviderId: null }).toString()).not.toContain('key_provider_id');
  });

  it('hashes exactly its bytes, which a round trip with null members does not change', () => {
    const bytes = renderAppCompose(COMPOSE);
    expect(composeHash(bytes)).toBe(createHash('sha256').update(bytes).digest('hex'));
    const { name, ...rest } = membersOf(bytes);
    expect(canonicalAppCompose({ salt: null, ...rest, bash_script: null, name })).toEqual(bytes);
  });

  it.skipIf(realTdx.absent)(`gives the genuine one its measured hash (${realTdx.why})`, () => {
    expect(composeHash(canonicalAppCompose(JSON.parse(realTdx.appCompose())))).toBe(
      '1b8a63efb0f7afda1e52c823f39cc0a79d6d75c2e7a086b58e0e6a2db548524b',
    );
  });

  it('matches every variable in the init script, and no other', () => {
    expect(membersOf(renderAppCompose(COMPOSE)).init_script).toContain(
      "'^(EVAL_PLAN|EVAL_RUN_TOKEN|MODEL_KEY)=[A-Za-z0-9+/=_.:-]*$'",
    );
  });

  it('gives an eval guest its three mounts and literals, no port, no value', () => {
    expect(servicesOf(renderAppCompose(COMPOSE))).toEqual({
      evaluator: {
        image: COMPOSE.imageRef,
        restart: 'no',
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        command: ['--plan-root', 'b'.repeat(64), '--challenge-id', 'chal-1'],
        environment: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
        volumes: [
          '/var/run/docker.sock:/var/run/docker.sock',
          '/var/run/dstack.sock:/var/run/dstack.sock',
          '/sys/fs/cgroup:/sys/fs/cgroup:ro',
        ],
      },
    });
  });

  it('gives a review guest the quote socket alone', () => {
    const { reviewer } = servicesOf(renderReviewCompose(REVIEW));
    expect(reviewer.volumes).toEqual(['/var/run/dstack.sock:/var/run/dstack.sock']);
    expect(reviewer.environment).toEqual(REVIEW_ENV_NAMES);
  });

  it('does not let compose interpolate a literal', () => {
    const planRoot = { ...COMPOSE.planRoot, challengeId: '$EVAL_PLAN"$x' };
    const { evaluator } = servicesOf(renderAppCompose({ ...COMPOSE, planRoot }));
    expect(evaluator.command[3]).toBe('$$EVAL_PLAN"$$x');
  });

  it('refuses an image that is named by tag', () => {
    expect(codeOf(() => renderAppCompose({ ...COMPOSE, imageRef: 'ghcr.io/owner/evaluator:1' }))).toBe(
      'schema_invalid',
    );
  });

  it.each([
    'COMPOSE_FILE',
    'OPENSSL_CONF',
    'GLIBC_TUNABLES',
    'GCONV_PATH',
    'CDPATH',
    'GLOBIGNORE',
    'GODEBUG',
    'TMPDIR',
    'DOCKER_HOST',
    'NODE_OPTIONS',
    'BASH_ENV',
    'LD_PRELOAD',
    'HTTPS_PROXY',
    'https_proxy',
    'SSL_CERT_FILE',
    'DSTACK_SIMULATOR_ENDPOINT',
    'PATH',
    'A|B',
    'A B',
    '',
    'EVAL_PLAN',
  ])('refuses the variable %j', (name) => {
    expect(codeOf(() => renderAppCompose({ ...COMPOSE, envNames: [...COMPOSE.envNames, name] }))).toBe(
      'env_name_refused',
    );
  });
});

describe('parseAppCompose', () => {
  it('reads back what was rendered', () => {
    expect(parseAppCompose(renderAppCompose(COMPOSE))).toEqual({
      role: 'eval',
      ...COMPOSE,
      envNames: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
    });
    expect(parseAppCompose(renderReviewCompose(REVIEW))).toEqual({ role: 'review', ...REVIEW });
  });

  it('renders any challenge id and KMS the same again', () => {
    const challengeId = fc.stringMatching(/^[\x21-\x7e]{1,40}$/);
    const kms = fc.option(fc.stringMatching(/^(?:[0-9a-f]{2}){1,8}$/));
    fc.assert(
      fc.property(challengeId, kms, (id, keyProviderId) => {
        const planRoot = { ...COMPOSE.planRoot, challengeId: id };
        const bytes = renderAppCompose({ ...COMPOSE, planRoot, keyProviderId });
        const read = parseAppCompose(bytes);
        expect(read).toMatchObject({ planRoot, keyProviderId });
        expect(renderComposed(read)).toEqual(bytes);
      }),
      { numRuns: 200 },
    );
  });

  const changed = (change: (members: Record<string, unknown>) => void): Buffer => {
    const members = membersOf(renderAppCompose(COMPOSE));
    change(members);
    return Buffer.from(JSON.stringify(members));
  };
  const inCompose = (from: string, to: string) =>
    changed((members) => {
      const text = String(members.docker_compose_file);
      expect(text).toContain(from);
      members.docker_compose_file = text.replace(from, to);
    });

  it.each<[string, () => Buffer]>([
    ['a mount more', () => inCompose('    volumes:\n', '    volumes:\n      - /:/host\n')],
    ['a writable cgroup mount', () => inCompose('cgroup:ro', 'cgroup')],
    ['a restart policy', () => inCompose('restart: "no"', 'restart: always')],
    ['a second service', () => inCompose('services:\n', 'services:\n  spy:\n    image: x\n')],
    ['a privileged service', () => inCompose('    read_only', '    privileged: true\n    read_only')],
    ['a value of a variable', () => inCompose('- "EVAL_PLAN"', '- "EVAL_PLAN=x"')],
    ['another argument', () => inCompose('"chal-1"]', '"chal-1", "--cache", "/x"]')],
    [
      'another init script',
      () =>
        changed((members) => {
          members.init_script = 'true';
        }),
    ],
    [
      'no init script',
      () =>
        changed((members) => {
          delete members.init_script;
        }),
    ],
    [
      'another file system',
      () =>
        changed((members) => {
          members.storage_fs = 'zfs';
        }),
    ],
    [
      'an added member',
      () =>
        changed((members) => {
          members.bash_script = 'x';
        }),
    ],
    [
      'a variable of the shell',
      () =>
        changed((members) => {
          members.allowed_envs = ['BASH_ENV'];
        }),
    ],
    ['another spelling', () => Buffer.from(`${renderAppCompose(COMPOSE)}\n`)],
    ['no JSON', () => Buffer.from('x')],
  ])('refuses %s', (_, bytes) => {
    expect(codeOf(() => parseAppCompose(bytes()))).toBe('compose_mismatch');
  });

  it.skipIf(realTdx.absent)(`refuses the genuine compose of another app (${realTdx.why})`, () => {
    const bytes = canonicalAppCompose(JSON.parse(realTdx.appCompose()));
    expect(codeOf(() => parseAppCompose(bytes))).toBe('compose_mismatch');
  });
});
