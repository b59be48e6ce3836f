import { describe, expect, it } from 'vitest';
import { renderAppCompose } from '../../../compose/app-compose.ts';
import { containerBody, readService } from '../../../scripts/run/compose-container.ts';
import { codeOf } from '../../support/throws.ts';

const IMAGE = `localhost/evaluator@sha256:${'a'.repeat(64)}`;
const deployed = renderAppCompose({
  imageRef: IMAGE,
  planRoot: { publicKey: 'b'.repeat(64), challengeId: 'a challenge of $5' },
  envNames: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
});

/** The same app-compose with another docker-compose file. */
function changed(change: (compose: string) => string): Buffer {
  const document = JSON.parse(deployed.toString());
  return Buffer.from(
    JSON.stringify({ ...document, docker_compose_file: change(document.docker_compose_file) }),
  );
}

describe('a container of a compose', () => {
  const body = containerBody(readService(deployed), {
    imageId: 'sha256:1',
    values: { EVAL_PLAN: 'plan', EVAL_RUN_TOKEN: 'token', NOT_NAMED: 'x' },
    sources: new Map([['/var/run/dstack.sock', '/run/desk/dstack.sock']]),
    network: 'bridge-of-mine',
    labels: { of: 'mine' },
  });

  it('has what the compose says, and nothing beside', () => {
    expect(body).toEqual({
      Image: 'sha256:1',
      Cmd: ['--plan-root', 'b'.repeat(64), '--challenge-id', 'a challenge of $5'],
      Env: ['EVAL_PLAN=plan', 'EVAL_RUN_TOKEN=token'],
      Labels: { of: 'mine' },
      HostConfig: {
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges:true'],
        RestartPolicy: { Name: 'no' },
        NetworkMode: 'bridge-of-mine',
        Mounts: [
          { Type: 'bind', Source: '/var/run/docker.sock', Target: '/var/run/docker.sock', ReadOnly: false },
          { Type: 'bind', Source: '/run/desk/dstack.sock', Target: '/var/run/dstack.sock', ReadOnly: false },
          { Type: 'bind', Source: '/sys/fs/cgroup', Target: '/sys/fs/cgroup', ReadOnly: true },
        ],
      },
    });
  });

  it('has one mount more where the compose has one more', () => {
    const { volumes } = readService(changed((compose) => `${compose}      - /:/host\n`));
    expect(volumes.at(-1)).toEqual({ source: '/', target: '/host', access: 'rw' });
  });
});

describe('a compose that cannot be started as it stands is refused:', () => {
  it.each<[string, (compose: string) => string]>([
    ['a key that nothing here applies', (compose) => `${compose}    privileged: true\n`],
    [
      'a second service',
      (compose) => `${compose}${compose.slice(compose.indexOf('  evaluator')).replace('evaluator', 'other')}`,
    ],
    ['a writable root file system', (compose) => compose.replace('read_only: true', 'read_only: false')],
    ['a capability kept', (compose) => compose.replace('["ALL"]', '["CHOWN"]')],
    ['a variable with a value', (compose) => compose.replace('"EVAL_PLAN"', '"EVAL_PLAN=1"')],
    ['a named volume', (compose) => `${compose}      - data:/data\n`],
    ['a mount with other options', (compose) => compose.replace('/cgroup:ro', '/cgroup:ro,z')],
    ['an image by its tag', (compose) => compose.replace(IMAGE, 'localhost/evaluator:1')],
    ['no YAML', () => '{'],
  ])('%s', (_, change) => {
    expect(codeOf(() => readService(changed(change)))).toBe('compose_mismatch');
  });

  it('no JSON', () => {
    expect(codeOf(() => readService(Buffer.from('{')))).toBe('compose_mismatch');
  });
});
