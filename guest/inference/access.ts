import { randomBytes } from 'node:crypto';
import type { ContainerSpec, ContainerState, Engine } from '../engine/port.ts';
import { readSingleFile } from '../engine/read-file.ts';
import { verifyCreated } from '../engine/verify-created.ts';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import type { Inference } from '../wire/inference.ts';
import { createBridge } from './bridge.ts';
import { type Counts, parseCounts } from './counts.ts';
import { PROXY_COMMAND, proxyTar } from './program.ts';
import { COUNTS_FILE, PROXY_HOME, type Settings } from './proxy/settings.ts';

const MIB = 1024 * 1024;
/** Reserved beside each rep that has a proxy. Its CPU time is nobody's budget. */
export const PROXY_MEMORY_BYTES = 256 * MIB;

const PORT = 8080;
const CONNECT_MS = 10_000;
const TOTAL_MS = 300_000;
const RECEIVE_MS = 60_000;
const LISTENS_WITHIN_MS = 30_000;
const LOOK_MS = 10;
const MAX_COUNTS_BYTES = 4096;

/** What a run offers to reps with `network: inference`. */
export interface InferenceOffer {
  rules: Inference;
  /** The endpoint's; the proxy alone ever has it. */
  apiKey: string;
  /** An image with Node 24. */
  imageId: string;
}

/** What opening an access needs of its run. */
export interface AccessContext {
  engine: Engine;
  offer: InferenceOffer;
  /** Of everything that is made here. */
  labels: Readonly<Record<string, string>>;
  cpuShares: number;
  /** The network by which proxies reach the endpoint. */
  outside: string;
  monotonicMs: () => number;
  sleep: (ms: number) => Promise<void>;
}

/** One rep's way to a model: a bridge of its own whose only other member is a proxy of its own. */
export interface Access {
  /** Name of the bridge that the agent's container is put on. */
  network: string;
  /** NAME=value pairs for the agent's exec. */
  env: readonly string[];
  proxy: { containerId: string; started: ContainerState };
}

function proxySpec({ offer, labels, cpuShares, outside }: AccessContext, name: string): ContainerSpec {
  return {
    name,
    image: offer.imageId,
    command: PROXY_COMMAND,
    env: [],
    workingDir: '/',
    labels,
    capAdd: [],
    nanoCpus: 1e9,
    cpuShares,
    memoryBytes: PROXY_MEMORY_BYTES,
    pids: 64,
    fileSizeBytes: MIB,
    network: outside,
    dns: 'engine',
    toolsVolume: null,
  };
}

function settingsOf({ rules, apiKey }: InferenceOffer, host: string, bearer: string): Settings {
  const { reply_tokens, ...caps } = rules.caps;
  return {
    host,
    port: PORT,
    bearer,
    models: rules.models,
    maxReplyTokens: reply_tokens,
    caps,
    upstream: {
      url: rules.upstream,
      apiKey,
      caPem: rules.ca_pem,
      connectMs: CONNECT_MS,
      totalMs: TOTAL_MS,
    },
    receiveMs: RECEIVE_MS,
  };
}

/** Waits until the proxy listens. @throws holder_not_running, engine_*. */
async function untilItListens(context: AccessContext, containerId: string): Promise<void> {
  const { engine, monotonicMs, sleep } = context;
  const untilMs = monotonicMs() + LISTENS_WITHIN_MS;
  for (;;) {
    if ((await engine.statPath(containerId, `${PROXY_HOME}/${COUNTS_FILE}`)) !== null) return;
    const { running, status } = await engine.inspect(containerId);
    if (!running || monotonicMs() >= untilMs)
      throw new EvaluatorError(
        'holder_not_running',
        `the model proxy does not listen; its container is ${status}`,
      );
    await sleep(LOOK_MS);
  }
}

async function startProxy(context: AccessContext, access: { name: string; host: string; bearer: string }) {
  const { engine } = context;
  const spec = proxySpec(context, `${access.name}-proxy`);
  const containerId = await engine.create(spec);
  verifyCreated(spec, await engine.inspectRaw(containerId));
  await engine.connect(access.name, containerId, access.host);
  await engine.putArchive(containerId, '/', proxyTar(settingsOf(context.offer, access.host, access.bearer)));
  await engine.start(containerId);
  await untilItListens(context, containerId);
  return { containerId, started: await engine.inspect(containerId) };
}

/**
 * Opens one rep's way to a model, before its agent's container is made. What was made is removed again when a
 * part of it fails; what cannot be removed is left to the sweep.
 * @param name of bridge and proxy; free on this engine.
 * @throws engine_*, holder_not_running, container_not_as_asked.
 */
export async function openAccess(context: AccessContext, name: string): Promise<Access> {
  const { engine, offer } = context;
  const bearer = randomBytes(32).toString('hex');
  try {
    const host = await createBridge(engine, name, context.labels);
    const proxy = await startProxy(context, { name, host, bearer });
    const base = `http://${host}:${PORT}/v1`;
    const env = [
      `OPENAI_BASE_URL=${base}`,
      // The same by its older name, which many libraries still read.
      `OPENAI_API_BASE=${base}`,
      `OPENAI_API_KEY=${bearer}`,
      `INFERENCE_MODELS=${offer.rules.models.join(' ')}`,
    ];
    return { network: name, env, proxy };
  } catch (error) {
    await engine.remove(`${name}-proxy`).catch(() => undefined);
    await engine.removeNetwork(name).catch(() => undefined);
    throw error;
  }
}

/**
 * Ends the proxy and reads what its rep has used; null where its word cannot be had.
 * @throws engine_*.
 */
export async function endProxy(engine: Engine, { proxy }: Access): Promise<Counts | null> {
  const { containerId } = proxy;
  await engine.kill(containerId).catch((error) => {
    // It may have ended by itself: an agent can exhaust its memory, and has no model from then on.
    if (!isEvaluatorError(error, 'engine_conflict')) throw error;
  });
  const file = await readSingleFile(engine, containerId, `${PROXY_HOME}/${COUNTS_FILE}`, MAX_COUNTS_BYTES);
  return file.kind === 'file' ? parseCounts(file.bytes) : null;
}

/** Takes the agent's container off the bridge, whether it is dead or serves on. @throws engine_*. */
export async function leaveBridge(engine: Engine, access: Access, containerId: string): Promise<void> {
  await engine.disconnect(access.network, containerId).catch((error) => {
    if (!isEvaluatorError(error, 'engine_not_found')) throw error;
  });
}

/** Removes proxy and bridge. What is late is left to the sweep, and changes no outcome (spec/02). */
export async function removeAccess(engine: Engine, { network, proxy }: Access): Promise<void> {
  await engine.remove(proxy.containerId).catch(() => undefined);
  await engine.removeNetwork(network).catch(() => undefined);
}
