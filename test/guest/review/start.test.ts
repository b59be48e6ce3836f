import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ENTRY = fileURLToPath(new URL('../../../guest/review.ts', import.meta.url));
const ARGUMENTS = ['--plan-root', 'a'.repeat(64), '--challenge-id', 'c'];
const ENVIRONMENT = {
  REVIEW_SESSION_TOKEN: `review-1.${'ab'.repeat(32)}`,
  REVIEW_API_BASE_URL: 'https://127.0.0.1:1',
  OPENROUTER_API_KEY: 'sk-the-key',
};

function ended(env: Record<string, string | undefined>, args: readonly string[] = ARGUMENTS) {
  const { status, stderr, stdout } = spawnSync(process.execPath, [ENTRY, ...args], {
    env: { ...ENVIRONMENT, ...env },
    encoding: 'utf8',
  });
  const last = stderr.trim().split('\n').at(-1) ?? '{}';
  return { status, stdout, stderr, code: (JSON.parse(last) as { code?: string }).code };
}

describe('guest/review.ts', () => {
  it.each<[string, string, Record<string, string | undefined>, readonly string[]]>([
    ['no token', 'usage', { REVIEW_SESSION_TOKEN: undefined }, ARGUMENTS],
    ['a token that is none', 'review_token_malformed', { REVIEW_SESSION_TOKEN: 'review-1' }, ARGUMENTS],
    ['no address', 'usage', { REVIEW_API_BASE_URL: undefined }, ARGUMENTS],
    ['a plain address', 'usage', { REVIEW_API_BASE_URL: 'http://127.0.0.1:1' }, ARGUMENTS],
    ['a CA that is none', 'usage', { REVIEW_SERVER_CA: 'AAAA' }, ARGUMENTS],
    ['no key', 'usage', { OPENROUTER_API_KEY: undefined }, ARGUMENTS],
    ['a key that would add a header', 'usage', { OPENROUTER_API_KEY: 'a\r\nx-evil: 1' }, ARGUMENTS],
    ['a simulator', 'simulator_variable_set', { DSTACK_SIMULATOR_ENDPOINT: '/x' }, ARGUMENTS],
    ['no root', 'usage', {}, ['--challenge-id', 'c']],
    ['a plain model', 'usage', {}, [...ARGUMENTS, '--model-endpoint', 'http://model.invalid/']],
    ['an unknown option', 'usage', {}, [...ARGUMENTS, '--trust-me']],
  ])('refuses %s with %s before anything is asked', (_, code, env, args) => {
    expect(ended(env, args)).toMatchObject({ status: 2, code, stdout: '' });
  });

  it('never prints token or key', () => {
    const { stderr } = ended({ REVIEW_SESSION_TOKEN: 'secret-token', OPENROUTER_API_KEY: 'secret key' });
    expect(stderr).not.toContain('secret');
  });
});
