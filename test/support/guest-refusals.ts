import { createServer as createHttpServer, type Server as HttpServer, request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { renderAppCompose } from '../../compose/app-compose.ts';
import type { TaskCache } from '../../guest/tasks/types.ts';
import { newSession } from '../../guest/trial/labels.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { type EvalPlan, unsignedPlan } from '../../guest/wire/plan.ts';
import { ed25519PublicHex, signPlan, signSigner } from '../../guest/wire/plan-signature.ts';
import { loadStored } from '../../scripts/images/build.ts';
import { connectDeskEngine, DESK_LABEL, DESK_OWNER_LABEL } from '../../scripts/run/desk-engine.ts';
import { startContainer } from '../../scripts/run/guest-container.ts';
import { findGuestImage } from '../../scripts/run/guest-image.ts';
import { startGuestAgent } from '../../simulator/agent-api.ts';
import { ENGINE_SOCKET, testName } from '../docker/fixtures.ts';
import { storedName } from './guest-container.ts';
import { CHALLENGE_ID, type PlanKeys, planKeys, planTask, signedPlan } from './plan.ts';
import { testPlatform } from './valid-result.ts';

const RUN_TOKEN = 'a token of a run';
const HOUR_MS = 3_600_000;

/** In what one start differs from one that could go on. */
export interface Deviation {
  plan?: 'of another root' | 'unsigned' | 'signed by somebody' | 'expired';
  /** Variables that the compose names beside its own. */
  variables?: readonly string[];
  /** The target of a mount that the compose lacks. */
  without?: string;
  engine?: 'older';
}

/** Starts of the production image, each of which is refused. */
export interface Refusals {
  refuse(deviation: Deviation): Promise<{ code: string; exitCode: number | null }>;
  /** How often somebody has come to where the challenge would be. */
  connections(): number;
  close(): Promise<void>;
}

/** A plan for all tasks of a sealed cache, alive now, whose challenge is at `url`. */
function livePlan(keys: PlanKeys, cache: TaskCache, mechanism: Buffer, url: string, ttlMs: number): EvalPlan {
  const nowMs = Date.now();
  const window = { not_before_ms: nowMs - 24 * HOUR_MS, not_after_ms: nowMs + 24 * HOUR_MS };
  const signer = { public_key: ed25519PublicHex(keys.signer), challenge_id: CHALLENGE_ID, ...window };
  const { agent, eval_run_id } = signedPlan(keys);
  return signedPlan(keys, {
    signer: signSigner(signer, keys.root),
    cache_digest: cache.cacheDigest,
    toolchain_digest: cache.toolchainDigest,
    mechanism_digest: sha256Hex(mechanism),
    tasks: cache.taskIds.map((id) => {
      const { taskDigest: task_digest, image, verifierMode: verifier } = cache.task(id);
      return planTask(id, { task_digest, image, verifier });
    }),
    agent: { ...agent, artifact_url: `${url}/agents/1.zip` },
    key_release: { url: `${url}/key-release/v1/runs/${eval_run_id}`, nonce: 'a-key-nonce' },
    result: { url: `${url}/evaluation/v1/runs/${eval_run_id}/result` },
    run_token_sha256: sha256Hex(RUN_TOKEN),
    issued_at_ms: nowMs - 2 * HOUR_MS,
    expires_at_ms: nowMs + ttlMs,
  });
}

/** The engine behind `socket`, which says at `oldSocket` that it is of this version. */
async function olderEngine(socket: string, oldSocket: string, version: string): Promise<HttpServer> {
  const server = createHttpServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const asked = request({ socketPath: socket, method, path: url, headers }, async (answer) => {
      const said = (await buffer(answer)).toString();
      outgoing.writeHead(answer.statusCode ?? 500, { 'content-type': 'application/json' });
      outgoing.end(said.replace(/"(ServerVersion|Version)":"[^"]+"/g, `"$1":"${version}"`));
    });
    incoming.pipe(asked);
  });
  await new Promise<void>((resolve) => server.listen(oldSocket, resolve));
  return server;
}

/** Stands where a challenge would, and counts who comes. */
async function challengeDouble(host: string) {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `https://${host}:${port}`, connections: () => connections, server };
}

function encoded(plan: EvalPlan, keys: PlanKeys, deviation: Deviation['plan']): Buffer {
  if (deviation === 'unsigned') return encodeCanonical(unsignedPlan(plan));
  if (deviation === 'signed by somebody') return encodeCanonical(signPlan(unsignedPlan(plan), keys.root));
  return encodeCanonical(plan);
}

function deviating(appCompose: Buffer, { variables = [], without }: Deviation): Buffer {
  const document = JSON.parse(appCompose.toString());
  const lines = String(document.docker_compose_file)
    .split('\n')
    .filter((line) => without === undefined || !line.includes(`:${without}`))
    .flatMap((line) =>
      line === '    environment:' ? [line, ...variables.map((name) => `      - ${name}`)] : [line],
    );
  return Buffer.from(JSON.stringify({ ...document, docker_compose_file: lines.join('\n') }));
}

/** @param options.tag the image of a run, of which the production one is taken. */
export async function startRefusals(options: {
  tag: string;
  cache: TaskCache;
  folder: string;
}): Promise<Refusals> {
  const { tag, cache, folder } = options;
  const name = storedName(tag, 'eval').replace(/^localhost\//, '');
  if (name !== tag) await loadStored(`localhost/${name}`, name, ENGINE_SOCKET);
  const engine = connectDeskEngine(ENGINE_SOCKET);
  const network = testName();
  const labels = { [DESK_LABEL]: network, [DESK_OWNER_LABEL]: newSession(null).owner };
  const { gateway } = await engine.openBridge(network, labels);
  const desk = { engine, engineSocket: ENGINE_SOCKET, id: network, labels, network };
  const image = await findGuestImage(desk, name);
  const challenge = await challengeDouble(gateway);
  const oldSocket = join(folder, 'old-engine.sock');
  const old = await olderEngine(ENGINE_SOCKET, oldSocket, '24.0.9');
  const platform = await testPlatform({ nowMs: Date.now() });
  const guestAgentSocket = join(folder, 'dstack.sock');
  const agent = await startGuestAgent({ socketPath: guestAgentSocket, platform, faults: [] });
  const [keys, others] = [planKeys(), planKeys()];
  let started = 0;

  return {
    refuse: async (deviation) => {
      const signing = deviation.plan === 'of another root' ? others : keys;
      const ttlMs = deviation.plan === 'expired' ? -HOUR_MS : HOUR_MS;
      const plan = encoded(
        livePlan(signing, cache, image.mechanism, challenge.url, ttlMs),
        keys,
        deviation.plan,
      );
      const { planRoot } = keys;
      const names = ['EVAL_PLAN', 'EVAL_RUN_TOKEN'];
      const appCompose = deviating(
        renderAppCompose({ imageRef: image.ref, planRoot, envNames: names }),
        deviation,
      );
      const more = Object.fromEntries((deviation.variables ?? []).map((variable) => [variable, 'set']));
      const said: string[] = [];
      const own = { ...desk, id: `${network}-${started++}` };
      const guest = await startContainer(
        deviation.engine === 'older' ? { ...own, engineSocket: oldSocket } : own,
        image.id,
        {
          appCompose,
          planRoot,
          guestAgentSocket,
          env: { ...more, EVAL_PLAN: plan.toString('base64url'), EVAL_RUN_TOKEN: RUN_TOKEN },
          onStdout: (line) => said.push(line),
          onStderr: (line) => said.push(line),
        },
      );
      const exitCode = await guest.exited;
      const events = said.map((line) => JSON.parse(line) as { event: string; code: string });
      return { code: events.find(({ event }) => event === 'error')?.code ?? said.join('\n'), exitCode };
    },
    connections: challenge.connections,
    close: async () => {
      for (const { kind, id, labels } of await engine.listOwned(DESK_LABEL))
        if (kind === 'container' && labels[DESK_LABEL] === network) await engine.remove(id);
      await engine.removeNetwork(network);
      for (const server of [challenge.server, old]) server.close();
      await agent.close();
    },
  };
}
