import { describe, expect, it } from 'vitest';
import { readDeployOptions } from '../../../scripts/deploy/options.ts';
import { IMAGE } from '../../support/deployment.ts';
import { thrown } from '../../support/throws.ts';

const SECRET = 'value-that-nobody-may-see';
const REAL: Record<string, string> = {
  '--image': IMAGE,
  '--plan-root': 'b'.repeat(64),
  '--challenge-id': 'c',
  '--key-provider-id': 'c0ffee',
  '--kms-signer': `0x02${'A'.repeat(64)}`,
  '--max-cost': '0.50',
};
const ENV = { PHALA_CLOUD_API_KEY: 'phak_x' };

const argv = (changed: Record<string, string | null> = {}) =>
  Object.entries({ ...REAL, ...changed }).flatMap(([name, value]) => (value === null ? [] : [name, value]));

describe('readDeployOptions', () => {
  it('reads a real deployment', () => {
    const options = readDeployOptions(argv({ '--agent-env': 'MODEL_KEY' }), ENV);
    expect(options).toMatchObject({
      mode: 'real',
      envNames: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
      instanceType: 'tdx.xlarge',
      osImage: 'dstack-0.5.9',
      diskGb: 100,
      timeoutMs: 7_200_000,
      kmsSigner: `02${'a'.repeat(64)}`,
      maxHourly: 500_000_000n,
      apiUrl: 'https://cloud-api.phala.com/api/v1',
    });
    expect(options?.name).not.toBe(readDeployOptions(argv(), ENV)?.name);
  });

  it('lets a review leave out the CA, and gives it a small VM', () => {
    const options = readDeployOptions(argv({ '--role': 'review' }), ENV);
    expect(options).toMatchObject({ instanceType: 'tdx.small', diskGb: 20 });
    expect([...(options?.optionalEnv ?? [])]).toEqual(['REVIEW_SERVER_CA']);
  });

  it.each(['--kms-signer', '--max-cost', '--key-provider-id'])(
    'demands %s unless it is a dry run',
    (name) => {
      expect(thrown(() => readDeployOptions(argv({ [name]: null }), ENV)).code).toBe('usage');
      expect(readDeployOptions([...argv({ [name]: null }), '--dry-run'], {})?.mode).toBe('dry-run');
    },
  );

  it.each<[string, Record<string, string>, string]>([
    ['an API in clear text', { '--api': 'http://cloud.invalid/api' }, 'usage'],
    ['an API that is no address', { '--api': 'cloud' }, 'usage'],
    ['a development OS', { '--os-image': 'dstack-dev-0.5.9' }, 'os_not_allowed'],
    ['an OS that runs no init script', { '--os-image': 'dstack-0.5.4' }, 'os_not_allowed'],
    ['a value on the command line', { '--agent-env': `A=${SECRET}` }, 'usage'],
    ['a cap in words', { '--max-cost': 'any' }, 'usage'],
    ['a shape that nobody knows', { '--vm-shape': 'constructor' }, 'usage'],
    ['a disk of nothing', { '--disk': '0' }, 'usage'],
    ['a timeout for ever', { '--timeout': '99999' }, 'usage'],
    ['a KMS key of another curve', { '--kms-signer': 'c'.repeat(64) }, 'usage'],
    ['a file that is not there', { '--env-file': '/absent' }, 'usage'],
  ])('refuses %s', (_, changed, code) => {
    const error = thrown(() => readDeployOptions(argv(changed), ENV));
    expect(error.code).toBe(code);
    expect(error.message).not.toContain(SECRET);
  });

  it('refuses to be real without an API key', () => {
    expect(thrown(() => readDeployOptions(argv(), {})).code).toBe('usage');
  });
});
