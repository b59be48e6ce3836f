import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Code } from '../../guest/errors.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { ed25519PublicHex, signSigner } from '../../guest/wire/plan-signature.ts';
import { ensureTestImage } from '../docker/fixtures.ts';
import { evaluator, guestOf, startEvaluator } from '../support/evaluator.ts';
import { planKeys, signedPlan } from '../support/plan.ts';
import { MANIFEST, rawZip } from '../support/raw-zip.ts';
import { scratchFolder } from '../support/scratch.ts';
import { ownedObjects, SMALL_TASK, writeAgent, writeTasks } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

const folder = scratchFolder();
const at = (...path: string[]) => join(folder, ...path);
const cache = at('cache');

async function badTask(name: string, toml: string): Promise<string> {
  return writeTasks(at(name), { small: { ...SMALL_TASK, 'task.toml': toml } });
}

removeTaskImages(['small']);
beforeAll(async () => {
  await ensureTestImage();
  await writeTasks(at('tasks'), { small: SMALL_TASK });
  await writeAgent(at('agent'), 'true\n');
  const baked = await evaluator(['bake', '--from', at('tasks'), '--out', cache]);
  expect(baked.code, baked.stderr).toBe(0);

  cpSync(cache, at('changed'), { recursive: true });
  const instruction = at('changed', 'small', 'instruction.md');
  writeFileSync(instruction, readFileSync(instruction, 'utf8').replace('right', 'wrong'));
  mkdirSync(at('odd', 'manifest.json'), { recursive: true });
  writeFileSync(at('a-file'), 'content\n');
  mkdirSync(at('full'));
  writeFileSync(at('full', 'old'), '');
  writeFileSync(at('evil.zip'), rawZip([MANIFEST, { name: '../evil', data: Buffer.from('x') }]));
  writeFileSync(at('no.zip'), 'no zip at all');
  await writeAgent(at('empty-command'), 'true\n');
  writeFileSync(
    at('empty-command', 'agent.yaml'),
    'schema_version: 1\nkind: container\ncommand: []\nenv: []\n',
  );
  await badTask('bad-type', '[agent]\ntimeout_sec = "sixty"\n');
  await badTask('bad-syntax', '[agent\n');
});

interface Case {
  args: string[];
  code: Code;
  says: (string | RegExp)[];
}

/** Stands for a folder of the case's own. */
const OUT = '<out>';

/** `run` with what is right, overridden: the last one counts. */
const run = (...args: string[]) => ['run', '--cache', cache, '--agent', at('agent'), '--out', OUT, ...args];

const CASES: Record<string, Case> = {
  'an unknown verb': { args: ['judge'], code: 'usage', says: ['"judge"', 'known: run, '] },
  'an unknown option': {
    args: run('--speed', '9'),
    code: 'usage',
    says: ["'--speed'", 'usage: evaluator run'],
  },
  'an option without its value': { args: [...run(), '--tasks'], code: 'usage', says: ['--tasks'] },
  'a variable that is not set': {
    args: run('--agent-env', 'CVM_EVALUATOR_UNSET'),
    code: 'usage',
    says: ['--agent-env CVM_EVALUATOR_UNSET', 'not set'],
  },
  'a missing option': { args: ['run', '--agent', 'nop'], code: 'usage', says: ['--cache is missing'] },
  'an unknown task': {
    args: run('--tasks', 'small,other'),
    code: 'task_unknown',
    says: ['"other"', 'it has small'],
  },
  'an unknown task of a plain folder': {
    args: run('--cache', at('tasks'), '--tasks', 'other'),
    code: 'task_unknown',
    says: ['"other"'],
  },
  'no reps': { args: run('--reps', '0'), code: 'usage', says: ['--reps "0"', 'from 1 to 64'] },
  'reps that are no number': { args: run('--reps', '1e1'), code: 'usage', says: ['--reps "1e1"'] },
  'an unknown policy': { args: run('--policy', 'best'), code: 'usage', says: ['vote or mean'] },
  'a cache that is not there': { args: run('--cache', at('absent')), code: 'usage', says: [at('absent')] },
  'a cache that is a file': {
    args: run('--cache', at('a-file')),
    code: 'task_unknown',
    says: [at('a-file')],
  },
  'a cache that cannot be read': {
    args: run('--cache', at('odd')),
    code: 'cache_unreadable',
    says: [at('odd')],
  },
  'a cache with one byte changed': {
    args: run('--cache', at('changed')),
    code: 'cache_file_changed',
    says: ['task small', 'bake again'],
  },
  'a task.toml with a value of the wrong type': {
    args: run('--cache', at('bad-type')),
    code: 'task_toml_invalid',
    says: [at('bad-type', 'small', 'task.toml'), 'timeout_sec', 'number'],
  },
  'a task.toml that is no TOML': {
    args: run('--cache', at('bad-syntax')),
    code: 'task_toml_invalid',
    says: [at('bad-syntax', 'small', 'task.toml'), /line 1/i],
  },
  'an agent that is not there': {
    args: run('--agent', at('absent')),
    code: 'usage',
    says: ['--agent', at('absent')],
  },
  'a ZIP that breaks a limit': {
    args: run('--agent', at('evil.zip')),
    code: 'agent_package_refused',
    says: ['../evil'],
  },
  'an agent that is no ZIP': {
    args: run('--agent', at('no.zip')),
    code: 'agent_package_refused',
    says: ['ZIP'],
  },
  'an agent.yaml without a command': {
    args: run('--agent', at('empty-command')),
    code: 'agent_manifest_invalid',
    says: ['agent.yaml', 'command'],
  },
  'an --out that is a file': {
    args: run('--out', at('a-file')),
    code: 'usage',
    says: ['--out', at('a-file')],
  },
  'an --out below a file': {
    args: run('--out', at('a-file', 'x')),
    code: 'usage',
    says: ['--out', 'ENOTDIR'],
  },
  'an --out with something in it': {
    args: run('--out', at('full')),
    code: 'usage',
    says: ['--out', 'not empty'],
  },
  'no engine': {
    args: run('--engine', at('no.sock')),
    code: 'engine_absent',
    says: [at('no.sock'), 'start one', '--engine'],
  },
  'other reps than the track has': {
    args: run('--cache', at('tasks'), '--track', 'skills', '--reps', '1', '--engine', at('no.sock')),
    code: 'plan_contradicts_mechanism',
    says: ['--reps 1', 'skills', '3 times'],
  },
  'a review with nothing beside it': {
    args: run('--cache', at('tasks'), '--review', at('a-file'), '--engine', at('no.sock')),
    code: 'usage',
    says: ['--review', 'review-root.json'],
  },
  'logs of a check that cannot be written': {
    args: [
      'bake',
      '--from',
      at('tasks'),
      '--out',
      OUT,
      '--check',
      '--logs',
      at('a-file', 'x'),
      '--engine',
      at('no.sock'),
    ],
    code: 'usage',
    says: ['--logs', 'ENOTDIR'],
  },
  'tools that cannot be written': {
    args: ['toolchain', '--out', at('full')],
    code: 'usage',
    says: ['--out', 'name a file'],
  },
  'a RESULT to verify that is not there': {
    args: [
      'verify',
      at('absent'),
      ...['plan', 'plan-root', 'mechanism', 'allowlist', 'root', 'collateral'].flatMap((name) => [
        `--${name}`,
        at('a-file'),
      ]),
    ],
    code: 'usage',
    says: ['--plan-root', at('a-file')],
  },
  'an image that would go among other files': {
    args: ['build', '--image', 'review', '--out', at('full')],
    code: 'usage',
    says: ['--out', 'not empty'],
  },
  'no engine, for a folder of plain tasks': {
    args: run('--cache', at('tasks'), '--engine', at('no.sock')),
    code: 'engine_absent',
    says: ['start one'],
  },
  'no engine to bake with': {
    args: ['bake', '--from', at('tasks'), '--out', OUT, '--engine', at('no.sock')],
    code: 'engine_absent',
    says: ['start one'],
  },
  'a ranked run of a cache in plain': {
    args: run('--ranked'),
    code: 'cache_not_sealed',
    says: ['--cache', 'ranked', 'bake --seal'],
  },
  'the oracle, ranked': { args: run('--agent', 'oracle', '--ranked'), code: 'usage', says: ['oracle'] },
  'the oracle without solutions': { args: run('--agent', 'oracle'), code: 'usage', says: ['--solutions'] },
};

describe.concurrent('bad input', () => {
  it.each(Object.entries(CASES))(
    '%s: exit 2, a sentence, nothing started',
    async (name, { args, code, says }) => {
      const out = at(name.replaceAll(/\W/g, '-'));
      const ended = await evaluator(args.map((arg) => (arg === OUT ? out : arg)));
      expect(ended.code, ended.stderr).toBe(2);
      expect(ended.stdout).toBe('');
      const sentence = ended.stderr.split('\nevaluator: ').at(-1) ?? '';
      expect(ended.stderr).toContain(`[${code}]`);
      for (const word of says) expect(sentence).toMatch(typeof word === 'string' ? escaped(word) : word);
      expect(ended.stderr).not.toMatch(/^\s+at /m);
      expect(ended.stderr).not.toContain('"event":"stage"');
      expect(existsSync(out)).toBe(false);
    },
  );

  /** A run with an engine that says which one it is, and nothing more. */
  async function runWith(versions: { engine: string; api: string; runc: string }, ...args: string[]) {
    const socket = at(`${versions.engine}.sock`);
    const answers: Record<string, object> = {
      '/info': {
        ServerVersion: versions.engine,
        CgroupVersion: '1',
        CgroupDriver: 'cgroupfs',
        NCPU: 2,
        MemTotal: 2 ** 33,
        DockerRootDir: '/var/lib/docker',
      },
      '/version': { ApiVersion: versions.api, Components: [{ Name: 'runc', Version: versions.runc }] },
    };
    const server = createServer((request, response) => {
      const answer = answers[request.url?.replace(/^\/v[\d.]+/, '') ?? ''];
      response.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer ?? { message: 'unknown' }));
    }).listen(socket);
    await once(server, 'listening');
    try {
      return await evaluator(run('--engine', socket, ...args));
    } finally {
      server.close();
    }
  }

  it('an engine below the floor: exit 2, which one and how far', async () => {
    const ended = await runWith({ engine: '18.9.0', api: '1.39', runc: '1.0.0' });
    expect(ended.code, ended.stderr).toBe(2);
    expect(ended.stderr).toMatch(/API 1\.39 is below the floor 1\.41.*\[engine_below_floor\]/);
  });

  it("a part of an image's round, ranked: exit 2 before a task is baked for it", async () => {
    const skills = ['--cache', join(import.meta.dirname, '../../task-cache'), '--track', 'skills'];
    const sound = { engine: '25.0.3', api: '1.44', runc: '1.1.12' };
    const ended = await runWith(sound, ...skills, '--image', '--ranked');
    expect(ended.code, ended.stderr).toBe(2);
    expect(ended.stderr).toMatch(/4 tasks: .* skills has 50.*\[plan_contradicts_mechanism\]/);
    expect(ended.stderr).not.toContain('baking');
  });

  it.each([
    ['CPUs', 'cpus = 1000'],
    ['memory', 'memory_mb = 16000000'],
    ['disk', 'storage_mb = 16000000'],
  ])('a task that wants more %s than there is: exit 2, by name, without a container', async (what, line) => {
    const toml = `[agent]\ntimeout_sec = 60.0\n[environment]\n${line}\n`;
    const started = startEvaluator(
      run('--cache', await badTask(`big-${what}`, toml), '--out', at(`big-${what}-out`)),
    );
    const guest = await guestOf(started);
    const ended = await started.ended;
    expect(ended.code, ended.stderr).toBe(2);
    expect(ended.stderr).toMatch(
      /task small: at \d+ reps.* it wants .*, and this machine has .*; use a larger machine.* \[task_too_large\]/,
    );
    expect((await ownedObjects()).filter((object) => object.includes(`:${guest}:`))).toEqual([]);
  });
});

describe.concurrent('a guest with a plan that is not to be followed', () => {
  const keys = planKeys();
  const token = 'token';
  const now = Date.now();
  const window = { issued_at_ms: now - 1000, expires_at_ms: now + 3_600_000 };

  /** Runs the guest on a plan; no engine is at its socket. */
  async function guest(planText: string, runToken = token, root = keys.planRoot.publicKey) {
    const child = spawn(
      process.execPath,
      [
        ...[join(import.meta.dirname, '../../guest/eval.ts'), '--plan-root', root],
        ...['--challenge-id', keys.planRoot.challengeId, '--engine-socket', at('no.sock')],
      ],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env.PATH, EVAL_PLAN: planText, EVAL_RUN_TOKEN: runToken },
      },
    );
    const [stdout, stderr] = [child.stdout, child.stderr].map(async (stream) => {
      let text = '';
      for await (const chunk of stream) text += chunk;
      return text;
    });
    const [code] = await once(child, 'exit');
    const events = ((await stderr) ?? '')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    return { code, stdout: await stdout, error: events.find(({ event }) => event === 'error') };
  }

  const signer = signSigner(
    {
      public_key: ed25519PublicHex(keys.signer),
      challenge_id: keys.planRoot.challengeId,
      not_before_ms: now - 10_000,
      not_after_ms: now + 10_000,
    },
    keys.root,
  );
  const plan = (overrides: Partial<EvalPlan> = {}) =>
    signedPlan(keys, { ...window, signer, run_token_sha256: sha256Hex(token), ...overrides });
  const changed = (change: (plan: EvalPlan) => EvalPlan) => encodeCanonical(change(plan()) as never);
  const flip = (hex: string) => (hex.startsWith('0') ? '1' : '0') + hex.slice(1);

  it.each<[string, () => Buffer, Code]>([
    ['expired', () => encodeCanonical(plan({ expires_at_ms: now - 500 }) as never), 'plan_expired'],
    ['changed after it was signed', () => changed((p) => ({ ...p, r: 2 })), 'plan_signature_invalid'],
    [
      'with another signature',
      () => changed((p) => ({ ...p, plan_signature: flip(p.plan_signature) })),
      'plan_signature_invalid',
    ],
    [
      'by a signer that the root did not sign',
      () =>
        changed((p) => ({ ...p, signer: { ...p.signer, root_signature: flip(p.signer.root_signature) } })),
      'signer_signature_invalid',
    ],
    ['that is no plan', () => Buffer.from('{}'), 'schema_invalid'],
    [
      'that is not canonical',
      () => Buffer.from(`${encodeCanonical(plan() as never)} `),
      'json_not_canonical',
    ],
  ])('%s: exit 2 and its code, before the engine is asked', async (_, bytes, code) => {
    const ended = await guest(bytes().toString('base64url'));
    expect([ended.code, ended.error?.code, ended.error?.stage], ended.error?.message).toEqual([
      2,
      code,
      'preflight',
    ]);
    expect(ended.stdout).toBe('');
  });

  it('another root, another token: exit 2', async () => {
    const bytes = encodeCanonical(plan() as never).toString('base64url');
    const other = planKeys().planRoot.publicKey;
    expect((await guest(bytes, token, other)).error?.code).toBe('signer_signature_invalid');
    const wrongToken = await guest(bytes, 'another');
    expect([wrongToken.code, wrongToken.error?.code]).toEqual([2, 'run_token_mismatch']);
    expect(JSON.stringify(wrongToken)).not.toContain('another');
  });

  it.each([
    ['without a plan', ''],
    ['with a plan that is not base64url', 'e+/='],
  ])('%s: exit 2 and usage', async (_, text) => {
    const ended = await guest(text);
    expect([ended.code, ended.error?.code, ended.error?.stage]).toEqual([2, 'usage', null]);
  });
});

const escaped = (text: string) => new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
