import { describe, expect, it } from 'vitest';
import { parseAgentManifest } from '../../../guest/agent/manifest.ts';
import { codeOf, thrown } from '../../support/throws.ts';

const GOOD = 'schema_version: 1\nkind: container\ncommand: [python3, main.py]\nenv: [MODEL_URL]\n';
const parse = (text: string) => parseAgentManifest(Buffer.from(text));
const withEnv = (env: string) => GOOD.replace('[MODEL_URL]', env);

describe('parseAgentManifest', () => {
  it('reads the four members', () => {
    expect(parse(GOOD)).toEqual({
      schema_version: 1,
      kind: 'container',
      command: ['python3', 'main.py'],
      env: ['MODEL_URL'],
    });
    expect(parse(withEnv('[PATH, HOME]')).env).toEqual(['PATH', 'HOME']);
  });

  it.each([
    ['a key twice', `${GOOD}kind: container\n`],
    ['a key twice inside of a value', GOOD.replace('[MODEL_URL]', '[{a: 1, b: 2, a: 3}]')],
    ['a number for a key', `${GOOD}1: x\n`],
    ['a list for a key', `${GOOD}? [a]\n: x\n`],
    ['an alias', `${GOOD.replace('python3', '&p python3').replace('main.py', '*p')}`],
    ['an unknown tag', GOOD.replace('python3', '!!python/name:os.system x')],
    ['a second document', `${GOOD}---\n${GOOD}`],
    ['an unknown key', `${GOOD}image: x\n`],
    ['__proto__', `${GOOD}__proto__: {}\n`],
    ['a missing key', GOOD.replace('env: [MODEL_URL]\n', '')],
    ['another version', GOOD.replace('1', '2')],
    ['another kind', GOOD.replace('container', 'vm')],
    ['a command as text', GOOD.replace('[python3, main.py]', 'python3 main.py')],
    ['an empty command', GOOD.replace('[python3, main.py]', '[]')],
    ['a number in the command', GOOD.replace('main.py', '1')],
    ['NUL in the command', GOOD.replace('main.py', '"a\\0b"')],
    ['a newline in the command', GOOD.replace('main.py', '"a\\nb"')],
    ['an endless argument', GOOD.replace('main.py', 'a'.repeat(4097))],
    ['a variable twice', withEnv('[A, A]')],
    ['a variable with a value', withEnv('["A=1"]')],
    ['a list', '[1]'],
    ['nothing', ''],
    ['more than 256 KiB', `${GOOD}#${'x'.repeat(256 * 1024)}`],
  ])('refuses %s', (_, text) => {
    expect(codeOf(() => parse(text))).toBe('agent_manifest_invalid');
  });

  it('refuses bytes that are not UTF-8', () => {
    const bytes = Buffer.concat([Buffer.from(`${GOOD}# `), Buffer.of(0xff)]);
    expect(codeOf(() => parseAgentManifest(bytes))).toBe('agent_manifest_invalid');
  });

  it('lets no manifest write to a terminal through a message', () => {
    const error = thrown(() => parse(`${GOOD}"a\\x1b[31m\\u202e": 1\n`));
    expect(error.message).toContain('"a?[31m?"');
    expect(error.message).toMatch(/^[\x20-\x7e]*$/);
  });

  it.each(
    'LD_PRELOAD BASH_ENV NODE_OPTIONS DOCKER_HOST COMPOSE_FILE SSL_CERT_FILE DSTACK_SOCKET HTTP_PROXY https_proxy no_proxy TASK_WORKDIR AGENT_LOG_DIR EVAL_RUN_TOKEN EVAL_PLAN eval_run_token REVIEW_SESSION_TOKEN'.split(
      ' ',
    ),
  )('never gives an agent %s', (name) => {
    const error = thrown(() => parse(withEnv(`[${name}]`)));
    expect(error.code).toBe('agent_manifest_invalid');
    expect(error.message).toContain(`${name} is reserved`);
  });
});
