import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadIssuer, planRootOf } from '../../challenge/index.ts';
import { renderAppCompose } from '../../compose/app-compose.ts';
import type { AgentPackage } from '../../guest/agent/types.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { admissionOf } from './admission.ts';
import { guestSourceDigest } from './guest-source.ts';
import type { LoadedCache } from './inputs.ts';
import { localMechanism } from './local-mechanism.ts';
import type { RunOptions } from './options.ts';
import { type Running, startProcess, startServer } from './process.ts';
import { ROOT, type SimulatedMachine, startSimulator } from './simulator.ts';

const SHIPPED_MECHANISM = join(ROOT, 'guest/mechanism.yaml');
const PLAN_TTL_MS = 24 * 3_600_000;

/** One local evaluation's parts, so that a signal can end them all. */
export interface Local {
  options: RunOptions;
  agent: AgentPackage;
  loaded: LoadedCache;
  /** The mechanism's file. */
  mechanism: string;
  /** Scratch folder: sockets, keys, the challenge's state. */
  work: string;
  running: Running[];
  /** Called with what ends the run before the guest does. */
  fail: (error: EvaluatorError) => void;
  onLog: (process: string, line: string) => void;
}

/** The machine that the guest runs on, as its plan names it. */
interface EvalMachine extends SimulatedMachine {
  evalApp: EvalPlan['eval_app'];
  planRoot: { publicKey: string; challengeId: string };
}

/** Writes a desk's mechanism into the scratch folder. */
export function writeMechanism(work: string): string {
  const path = join(work, 'mechanism.yaml');
  writeFileSync(path, localMechanism(readFileSync(SHIPPED_MECHANISM)));
  return path;
}

/** The simulated TDX machine, booted with the compose that names this challenge's root key. */
export async function startMachine(local: Local): Promise<EvalMachine> {
  const state = join(local.work, 'challenge');
  mkdirSync(state, { mode: 0o700 });
  const planRoot = planRootOf(await loadIssuer(state));
  const imageRef = `localhost/cvm-evaluator-guest-source@sha256:${guestSourceDigest(ROOT)}`;
  const envNames = ['EVAL_PLAN', 'EVAL_RUN_TOKEN', ...local.agent.manifest.env];
  const machine = await startSimulator({
    work: local.work,
    appCompose: renderAppCompose({ imageRef, planRoot, envNames }),
    onLog: (line) => local.onLog('simulator', line),
  });
  keep(local, machine.running);
  const { measurement, keyProvider, vmShape } = machine;
  const evalApp = {
    image_ref: imageRef,
    compose_hash: measurement.compose_hash,
    measurement,
    key_provider: keyProvider,
    vm_shape: vmShape,
  };
  return { ...machine, evalApp, planRoot };
}

/** What the challenge hands out for a run. */
export interface IssuedRun {
  planBytes: Buffer;
  runToken: string;
}

/** Of what the challenge writes, what `verify` needs. */
const PUBLIC_FILES = ['plan.json', 'plan-root.json', 'allowlist.json', 'root.pem', 'collateral.json'];

/** A server's end before the guest's ends the run. */
function keep(local: Local, running: Running): void {
  local.running.push(running);
  running.exited.then((code) =>
    local.fail(
      new EvaluatorError('process_failed', `${running.name} ended (${code}) before the run was over`),
    ),
  );
}

/** The challenge: issues the plan, copied into `out`, and serves it over TLS on loopback. */
export async function startChallengeProcess(local: Local, machine: EvalMachine): Promise<IssuedRun> {
  const { options, agent, loaded } = local;
  const zip = join(local.work, 'agent.zip');
  writeFileSync(zip, agent.zip);
  // Not --out itself: the run token stays in the scratch folder.
  const issued = join(local.work, 'issued');
  const tasks = loaded.planned;
  const { image_ref, measurement, key_provider, vm_shape } = machine.evalApp;
  const config = {
    state_dir: join(local.work, 'challenge'),
    host: '127.0.0.1',
    port: 0,
    key_release_port: 0,
    out_dir: issued,
    tdx_root_pem: machine.rootPem,
    client_ca_pem: loaded.goldenKey === null ? null : machine.kmsRootPem,
    golden_key_path: loaded.goldenKey,
    reviews: admissionOf(options),
    collateral: machine.collateral,
    allowlist: {
      schema_version: 1,
      entries: [
        { measurement, key_provider, vm_shape, os_version: 'simulated', image_ref, git_revision: 'local' },
      ],
    },
    mechanism_path: local.mechanism,
    agent_zip_path: zip,
    agent_env: agent.manifest.env.filter((name) => options.agentEnv.includes(name)),
    cache: {
      cache_digest: loaded.cache.cacheDigest,
      cache_id: loaded.cache.cacheId,
      toolchain_digest: loaded.cache.toolchainDigest,
      tasks,
    },
    select: { n: tasks.length },
    r: options.reps,
    policy: options.policy,
    n_concurrent: options.concurrency,
    ranked: options.weight === 'ranked',
    eval_app: machine.evalApp,
    plan_ttl_ms: PLAN_TTL_MS,
    accepted_tcb: ['UpToDate'],
  };
  const { running } = await startServer({
    name: 'challenge',
    script: join(ROOT, 'challenge/main.ts'),
    args: [],
    env: {},
    input: JSON.stringify(config),
    onStderr: (line) => local.onLog('challenge', line),
  });
  keep(local, running);
  for (const name of PUBLIC_FILES) copyFileSync(join(issued, name), join(options.out, name));
  copyFileSync(local.mechanism, join(options.out, 'mechanism.yaml'));
  const runToken = readFileSync(join(issued, 'run-token'), 'ascii');
  return { planBytes: readFileSync(join(issued, 'plan.json')), runToken };
}

/** The guest, with what a deployed VM would hand it: the plan and the token as variables, nothing in argv. */
export function startGuest(
  local: Local,
  machine: EvalMachine,
  { planBytes, runToken }: IssuedRun,
  handlers: { onStdout: (line: string) => void; onStderr: (line: string) => void },
): Running {
  const { options, loaded } = local;
  const agentEnv = Object.fromEntries(
    options.agentEnv.flatMap((name) =>
      process.env[name] === undefined ? [] : [[name, process.env[name] ?? '']],
    ),
  );
  const running = startProcess({
    name: 'guest',
    script: join(ROOT, 'guest/eval.ts'),
    args: [
      '--plan-root',
      machine.planRoot.publicKey,
      '--challenge-id',
      machine.planRoot.challengeId,
      '--cache',
      loaded.cache.directory,
      '--mechanism',
      local.mechanism,
      '--engine-socket',
      options.engineSocket,
      '--guest-agent-socket',
      machine.socket,
      ...(options.agent === 'oracle' && loaded.solutions ? ['--solutions', loaded.solutions] : []),
      ...(options.weight === 'calibration' ? ['--logs', join(options.out, 'reps')] : []),
    ],
    env: { ...agentEnv, EVAL_PLAN: planBytes.toString('base64url'), EVAL_RUN_TOKEN: runToken },
    input: '',
    ...handlers,
  });
  local.running.push(running);
  return running;
}
