import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { type EvalPlan, parsePlan } from '../../guest/wire/plan.ts';
import type { Platform } from '../../simulator/platform.ts';
import { scratchFolder } from './scratch.ts';
import { allowlistOf } from './valid-result.ts';

const MECHANISM_PATH = fileURLToPath(new URL('../../guest/mechanism.yaml', import.meta.url));
export const MAIN = fileURLToPath(new URL('../../challenge/main.ts', import.meta.url));

/** A configuration of `challenge/main.ts` with its folders below a new temporary one. */
export function challengeConfig(platform: Platform, overrides: Record<string, unknown> = {}) {
  const base = scratchFolder();
  mkdirSync(join(base, 'out'));
  const agentZip = join(base, 'agent.zip');
  writeFileSync(agentZip, 'the agent, as far as this test needs one');
  const task = (name: string) => ({
    task_id: name,
    task_digest: sha256Hex(`${name}/digest`),
    image: `sha256:${sha256Hex(`${name}/image`)}`,
    verifier: 'restart',
    network: 'none',
    budgets: { cpu_budget_ms: 60_000, wall_budget_ms: 120_000 },
  });
  return {
    state_dir: join(base, 'state'),
    host: '127.0.0.1',
    port: 0,
    key_release_port: 0,
    out_dir: join(base, 'out'),
    tdx_root_pem: platform.rootPem,
    client_ca_pem: null as string | null,
    golden_key_path: null as string | null,
    reviews: { kind: 'none' } as Record<string, unknown>,
    collateral: platform.collateral,
    allowlist: allowlistOf(platform),
    mechanism_path: MECHANISM_PATH,
    agent_zip_path: agentZip,
    agent_env: [],
    agent_runtime_image: null,
    cache: {
      cache_digest: sha256Hex('cache'),
      cache_id: null as string | null,
      toolchain_digest: sha256Hex('toolchain'),
      tasks: [task('task-a'), task('task-b'), task('task-c')],
    },
    select: { n: 2 },
    track: 'terminal-bench',
    labels_cache_path: null as string | null,
    r: 3,
    policy: 'vote',
    n_concurrent: 2,
    ranked: false,
    eval_app: {
      image_ref: allowlistOf(platform).entries[0]?.image_ref,
      compose_hash: platform.measurement.compose_hash,
      measurement: platform.measurement,
      key_provider: platform.keyProvider,
      vm_shape: platform.vmShape,
    },
    plan_ttl_ms: 3_600_000,
    accepted_tcb: ['UpToDate'],
    ...overrides,
  };
}
export type TestConfig = ReturnType<typeof challengeConfig>;

export interface ChallengeProcess {
  child: ChildProcess;
  url: string;
  evalRunId: string;
  plan: EvalPlan;
  runToken: string;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Starts `script` (challenge/main.ts or a stand-in for it) and waits until it serves. */
export async function spawnChallenge(
  config: TestConfig,
  script = MAIN,
  args: readonly string[] = [],
): Promise<ChallengeProcess> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  child.stdin.end(JSON.stringify(config));
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = JSON.parse(line) as { url: string; eval_run_id: string };
    return {
      child,
      url: ready.url,
      evalRunId: ready.eval_run_id,
      plan: parsePlan(readFileSync(join(config.out_dir, 'plan.json'))),
      runToken: readFileSync(join(config.out_dir, 'run-token'), 'ascii'),
      kill: async (signal) => {
        child.kill(signal);
        await exited;
      },
    };
  }
  throw new Error(`the challenge did not start: ${errors}`);
}

export interface HttpReply {
  status: number;
  body: Buffer;
  json: Record<string, unknown>;
}

export interface HttpCall {
  method: 'GET' | 'POST';
  token: string;
  ca: string;
  body?: Buffer;
}

/** One exchange on a connection of its own, trusting the plan's CA alone. */
export function call(url: string, { method, token, ca, body }: HttpCall): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Length': body?.length ?? 0 };
    const outgoing = request(url, { method, ca, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const reply = Buffer.concat(chunks);
        const isJson = response.headers['content-type'] === 'application/json';
        const json = isJson ? (JSON.parse(reply.toString()) as Record<string, unknown>) : {};
        resolve({ status: response.statusCode ?? 0, body: reply, json });
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Polls `look` until it is true: only for what another process does. */
export async function eventually(look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) await new Promise((resolve) => setTimeout(resolve, 20));
}
