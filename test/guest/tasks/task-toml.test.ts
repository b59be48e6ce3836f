import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { parseTaskToml } from '../../../guest/tasks/task-toml.ts';
import { thrown } from '../../support/throws.ts';

const parse = (text: string) => parseTaskToml(Buffer.from(text), 'demo/task.toml');

function refusal(text: string): string {
  const error = thrown(() => parse(text));
  expect(error.code).toBe('task_toml_invalid');
  expect(error.message).toContain('demo/task.toml');
  return error.message;
}

describe('parseTaskToml', () => {
  it('fills in what a task leaves out', () => {
    expect(parse('')).toEqual({
      track: 'terminal-bench',
      verifier: { timeoutSec: 600, env: {}, mode: 'restart', artifactPaths: [] },
      agent: { timeoutSec: 600 },
      environment: {
        buildTimeoutSec: 600,
        dockerImage: null,
        cpus: 1,
        memoryMb: 2048,
        storageMb: 10240,
        gpus: 0,
        allowInternet: true,
        env: {},
        capAdd: [],
      },
    });
  });

  it('reads every key that it knows', () => {
    const text = `
      [verifier]
      timeout_sec = 12.5
      mode = "live"
      artifact_paths = ["/app", "/srv/data"]
      env = { TOKEN = "x" }
      [agent]
      timeout_sec = 30
      [environment]
      build_timeout_sec = 40.0
      docker_image = "org/demo:1"
      cpus = 2
      memory_mb = 512
      storage_mb = 1024
      gpus = 1
      allow_internet = false
      cap_add = ["NET_RAW"]
      [environment.env]
      MODE = "fast"`;
    expect(parse(`track = "skills"\n${text}`)).toEqual({
      track: 'skills',
      verifier: { timeoutSec: 12.5, env: { TOKEN: 'x' }, mode: 'live', artifactPaths: ['/app', '/srv/data'] },
      agent: { timeoutSec: 30 },
      environment: {
        buildTimeoutSec: 40,
        dockerImage: 'org/demo:1',
        cpus: 2,
        memoryMb: 512,
        storageMb: 1024,
        gpus: 1,
        allowInternet: false,
        env: { MODE: 'fast' },
        capAdd: ['NET_RAW'],
      },
    });
  });

  it('passes over keys that it does not know', () => {
    const text =
      'version = "1.0"\n[metadata]\ntags = []\n[environment]\nmcp_servers = []\n[agent]\nx = { y = 1 }';
    expect(parse(text)).toEqual(parse(''));
  });

  it('reads sizes with a unit', () => {
    const { environment } = parse('[environment]\nmemory = "2G"\nstorage = "512M"');
    expect(environment).toMatchObject({ memoryMb: 2048, storageMb: 512 });
  });

  it.each([
    ['[agent]\ntimeout_sec = "900"', 'agent.timeout_sec'],
    ['[agent]\ntimeout_sec = 0', 'agent.timeout_sec'],
    ['[agent]\ntimeout_sec = nan', 'agent.timeout_sec'],
    ['[agent]\ntimeout_sec = inf', 'agent.timeout_sec'],
    ['agent = 1', 'agent'],
    ['[environment]\ncpus = 1.5', 'environment.cpus'],
    ['[environment]\ncpus = 0', 'environment.cpus'],
    ['[environment]\nmemory_mb = "2048"', 'environment.memory_mb'],
    ['[environment]\nmemory_mb = -1', 'environment.memory_mb'],
    ['[environment]\nmemory = "2 gigs"', 'environment.memory'],
    ['[environment]\nmemory = 2', 'environment.memory'],
    ['[environment]\nmemory = "2G"\nmemory_mb = 2048', 'environment.memory'],
    ['[environment]\nstorage = "1K"', 'environment.storage'],
    ['[environment]\nallow_internet = "yes"', 'environment.allow_internet'],
    ['[environment]\ncap_add = ["SYS_ADMIN"]', 'environment.cap_add'],
    ['[environment]\nenv = { A = 1 }', 'environment.env.A'],
    ['[environment]\nenv = { "A=B" = "1" }', 'environment.env'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a task
    ['[verifier]\nenv = { KEY = "${API_KEY}" }', 'verifier.env.KEY'],
    ['[verifier]\nmode = "alive"', 'verifier.mode'],
    ['[verifier]\nartifact_paths = ["/usr"]', 'verifier.artifact_paths'],
    ['[verifier]\nartifact_paths = "/app"', 'verifier.artifact_paths'],
    ['[agent]\ntimeout_sec = 1\ntimeout_sec = 2', 'line 3'],
    ['x = 1\n[agent', 'line 2'],
  ])('refuses %j and names the key', (text, key) => {
    expect(refusal(text)).toContain(key);
  });

  it('refuses bytes that are not UTF-8, and more than it reads', () => {
    expect(thrown(() => parseTaskToml(Buffer.from([0x23, 0xff]), 'x')).code).toBe('task_toml_invalid');
    expect(thrown(() => parseTaskToml(Buffer.alloc(300_000, '#'), 'x')).code).toBe('task_toml_invalid');
  });

  it('answers any text with a configuration or its own code', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((s) => `[environment]\nmemory = ${JSON.stringify(s)}`),
        ),
        (text) => {
          try {
            expect(parse(text).environment.memoryMb).toBeGreaterThan(0);
          } catch (error) {
            expect(isEvaluatorError(error, 'task_toml_invalid')).toBe(true);
          }
        },
      ),
    );
  });
});
