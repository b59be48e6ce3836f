import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadIssuer, planRootOf } from '../../challenge/index.ts';
import { composeHash, EVAL_ENV_NAMES } from '../../compose/app-compose.ts';
import { type Composed, renderComposed } from '../../compose/parse.ts';
import { givenEnv } from '../../guest/agent/manifest.ts';
import type { AgentPackage } from '../../guest/agent/types.ts';
import { trackKind } from '../../guest/consensus/track-kind.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { INFERENCE_KEY, wantsInference } from '../../guest/stages/model-access.ts';
import type { AllowlistEntry } from '../../guest/wire/measurement.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { admissionOf } from './admission.ts';
import type { GuestPlace } from './guest-place.ts';
import type { LoadedCache } from './inputs.ts';
import type { RunOptions } from './options.ts';
import { type Running, startServer } from './process.ts';
import { publishedEntry } from './published-entry.ts';
import { ROOT, type SimulatedMachine, startSimulator } from './simulator.ts';
import { repsOf } from './terms.ts';

const PLAN_TTL_MS = 24 * 3_600_000;

/** One local evaluation's parts, so that a signal can end them all. */
export interface Local {
  options: RunOptions;
  agent: AgentPackage;
  /** What a brokered agent's sandboxes are made from; null for a container agent. */
  runtimeImage: string | null;
  loaded: LoadedCache;
  place: GuestPlace;
  /** Scratch folder: sockets, keys, the challenge's state. */
  work: string;
  running: Running[];
  /** Called with what ends the run before the guest does. */
  fail: (error: EvaluatorError) => void;
  onLog: (process: string, line: string) => void;
}

/** The machine that the guest runs on. */
export interface EvalMachine extends SimulatedMachine {
  /** As the plan names it. */
  evalApp: EvalPlan['eval_app'];
  /** What is published of the image on it. */
  entry: AllowlistEntry;
  planRoot: { publicKey: string; challengeId: string };
  /** The bytes that it booted with. */
  appCompose: Buffer;
}

/** What is deployed for this run: the image of its place, this challenge's root key, its agent's variables. */
export async function composedFor(local: Local): Promise<Composed & { role: 'eval' }> {
  const state = join(local.work, 'challenge');
  mkdirSync(state, { mode: 0o700, recursive: true });
  const planRoot = planRootOf(await loadIssuer(state));
  const { env } = local.agent.manifest;
  const asked = env === 'plan' ? givenEnv({ env }, local.options.agentEnv) : env;
  const inference = wantsInference({ tasks: local.loaded.planned }) ? [INFERENCE_KEY] : [];
  const envNames = [...EVAL_ENV_NAMES, ...asked, ...inference];
  return { role: 'eval', imageRef: local.place.imageRef, planRoot, envNames, keyProviderId: null };
}

/**
 * A simulated TDX machine.
 * @param deployed the bytes that it boots with, as the plan then names them.
 * @param published what the challenge has on its list.
 */
export async function bootMachine(
  local: Local,
  deployed: Buffer,
  published: Composed & { role: 'eval' },
): Promise<EvalMachine> {
  const onLog = (line: string) => local.onLog('simulator', line);
  const machine = await startSimulator({ work: local.work, appCompose: deployed, onLog });
  keep(local, machine.running);
  const entry = await publishedEntry(machine, published, local.place.gitRevision);
  const { image_ref, key_provider, vm_shape } = entry;
  const measurement = { ...entry.measurement, compose_hash: composeHash(deployed) };
  const { compose_hash } = measurement;
  const evalApp = { image_ref, compose_hash, measurement, key_provider, vm_shape };
  return { ...machine, evalApp, entry, planRoot: published.planRoot, appCompose: deployed };
}

/** The machine that boots with what is published. */
export async function startMachine(local: Local): Promise<EvalMachine> {
  const composed = await composedFor(local);
  return bootMachine(local, renderComposed(composed), composed);
}

/** What the challenge hands out for a run. */
export interface IssuedRun {
  planBytes: Buffer;
  runToken: string;
}

/** Of what the challenge writes, what `verify` needs. */
const PUBLIC_FILES = ['plan.json', 'plan-root.json', 'allowlist.json', 'root.pem', 'collateral.json'];

/** A server's end before the guest's ends the run. */
export function keep(local: Pick<Local, 'running' | 'fail'>, running: Running): void {
  local.running.push(running);
  running.exited.then((code) =>
    local.fail(
      new EvaluatorError('process_failed', `${running.name} ended (${code}) before the run was over`),
    ),
  );
}

/** The challenge: issues the plan, copied into `out`, and serves it over TLS where the guest reaches it. */
export async function startChallengeProcess(local: Local, machine: EvalMachine): Promise<IssuedRun> {
  const { options, agent, loaded } = local;
  const zip = join(local.work, 'agent.zip');
  writeFileSync(zip, agent.zip);
  // Not --out itself: the run token stays in the scratch folder.
  const issued = join(local.work, 'issued');
  const tasks = loaded.planned;
  const config = {
    state_dir: join(local.work, 'challenge'),
    host: local.place.challengeHost,
    port: 0,
    key_release_port: 0,
    out_dir: issued,
    tdx_root_pem: machine.rootPem,
    client_ca_pem: loaded.goldenKey === null ? null : machine.kmsRootPem,
    golden_key_path: loaded.goldenKey,
    reviews: admissionOf(options),
    collateral: machine.collateral,
    allowlist: { schema_version: 1, entries: [machine.entry] },
    mechanism_path: local.place.mechanism,
    agent_zip_path: zip,
    agent_env: givenEnv(agent.manifest, options.agentEnv),
    agent_runtime_image: local.runtimeImage,
    cache: {
      cache_digest: loaded.cache.cacheDigest,
      cache_id: loaded.cache.cacheId,
      toolchain_digest: loaded.cache.toolchainDigest,
      tasks,
    },
    select: { n: tasks.length },
    track: options.track,
    labels_cache_path: trackKind(options.track) === 'behavioural' ? loaded.cache.directory : null,
    r: repsOf(options, readFileSync(local.place.mechanism)),
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
  copyFileSync(local.place.mechanism, join(options.out, 'mechanism.yaml'));
  writeFileSync(join(options.out, 'app-compose.json'), machine.appCompose);
  const runToken = readFileSync(join(issued, 'run-token'), 'ascii');
  return { planBytes: readFileSync(join(issued, 'plan.json')), runToken };
}

/** The guest, with what a deployed VM would hand it: the plan and the token as variables, nothing in argv. */
export async function startGuest(
  local: Local,
  machine: EvalMachine,
  { planBytes, runToken }: IssuedRun,
  handlers: { onStdout: (line: string) => void; onStderr: (line: string) => void },
): Promise<Running> {
  const agentEnv = Object.fromEntries(
    [...local.options.agentEnv, INFERENCE_KEY].flatMap((name) =>
      process.env[name] === undefined ? [] : [[name, process.env[name] ?? '']],
    ),
  );
  const { appCompose, planRoot, socket } = machine;
  const running = await local.place.start({
    appCompose,
    planRoot,
    guestAgentSocket: socket,
    env: { ...agentEnv, EVAL_PLAN: planBytes.toString('base64url'), EVAL_RUN_TOKEN: runToken },
    ...handlers,
  });
  local.running.push(running);
  return running;
}
