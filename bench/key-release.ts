import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectGuestAgent } from '../guest/attest/dstack.ts';
import { requestKeys } from '../guest/golden/key-release.ts';
import { clientIdentity } from '../guest/golden/ra-tls.ts';
import { createSteps, STEP_DEADLINES_MS } from '../guest/golden/steps.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import type { EvalPlan } from '../guest/wire/plan.ts';
import { startGuestAgent } from '../simulator/agent-api.ts';
import type { Platform } from '../simulator/platform.ts';
import { keyChallenge, livePlatform } from '../test/support/key-challenge.ts';
import { askForKeys, keyPair } from '../test/support/key-client.ts';
import { RUN_TOKEN } from '../test/support/valid-result.ts';
import { spread } from './statistics.ts';

/** Key release: one after the other by the guest's own client, and as many as the server can give. */
const ALONE = 50;
const TOGETHER = 400;
const AT_ONCE = 8;
const SEED = Buffer.alloc(32, 5);

/** Whom the server shall trust: signatures, and so roots, differ between processes. */
interface Trust {
  nowMs: number;
  rootDer: string;
  collateral: unknown;
}

interface Served {
  plans: EvalPlan[];
  caPem: string;
  cpuMs: number;
}

/** The server as a process of its own, its ledger on disk: what it costs is read from its own clock. */
async function serve(): Promise<void> {
  const [{ nowMs, rootDer, collateral }] = (await once(process, 'message')) as [Trust];
  const platform = await livePlatform({ seed: SEED, nowMs });
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const policy = { rootDer: Buffer.from(rootDer, 'hex'), collateral: async () => collateral };
  const ledgerPath = join(folder, 'ledger.sqlite');
  const challenge = await keyChallenge({ platform, policy, ledgerPath });
  const plans = Array.from({ length: ALONE + TOGETHER }, (_, i) =>
    challenge.prepare({
      eval_run_id: `bench-${i}`,
      agent: { ...challenge.plan.agent, agent_hash: sha256Hex(`agent ${i}`) },
    }),
  );
  const tell = () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ plans, caPem: challenge.caPem, cpuMs: (user + system) / 1000 } satisfies Served);
  };
  process.on('message', tell);
  process.on('disconnect', () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  });
  tell();
}

async function alone(platform: Platform, plans: readonly EvalPlan[]): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const socketPath = join(folder, 'dstack.sock');
  const guestAgent = await startGuestAgent({ socketPath, platform, faults: [] });
  const agent = connectGuestAgent({ socketPath, deadlineMs: 20_000 });
  const { signal } = new AbortController();
  const steps = createSteps({ deadlinesMs: STEP_DEADLINES_MS, mark: () => undefined, signal });
  const clock = { monotonicMs: () => performance.now(), sleep: async () => undefined };
  const samples: number[] = [];
  for (const plan of plans) {
    const start = performance.now();
    const { key_release: keyRelease } = plan;
    if (!keyRelease) throw new Error('a sealed plan');
    const identity = await clientIdentity({ agent, plan, steps });
    const exchange = { plan, keyRelease, identity, steps, clock, retryForMs: 0, signal };
    await requestKeys({ ...exchange, agent, runToken: RUN_TOKEN });
    samples.push(performance.now() - start);
  }
  await guestAgent.close();
  rmSync(folder, { recursive: true, force: true });
  return samples;
}

async function together(platform: Platform, plans: readonly EvalPlan[], ca: string): Promise<number> {
  const pairs = await Promise.all(plans.map((plan) => keyPair(platform, plan)));
  const queue = plans.entries();
  const start = performance.now();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [i, plan] of queue) {
        const pair = pairs[i];
        if (!pair) throw new Error('a pair for each plan');
        const { status } = await askForKeys({ platform, plan, pair, ca, token: RUN_TOKEN });
        if (status !== 200) throw new Error(`refused with ${status}`);
      }
    }),
  );
  return performance.now() - start;
}

if (process.send) await serve();
else {
  const nowMs = Date.now();
  const platform = await livePlatform({ seed: SEED, nowMs });
  const server = fork(import.meta.filename, { execArgv: ['--disable-warning=ExperimentalWarning'] });
  const { rootDer, collateral } = platform;
  server.send({ nowMs, rootDer: rootDer.toString('hex'), collateral } satisfies Trust);
  const ask = async (): Promise<Served> => {
    const answer = once(server, 'message');
    if (server.connected) server.send('usage');
    return (await answer)[0] as Served;
  };
  const [{ plans, caPem }] = (await once(server, 'message')) as [Served];
  await together(platform, plans.slice(0, 20), caPem);
  const before = await ask();
  const wallMs = await together(platform, plans.slice(20, TOGETHER), caPem);
  const after = await ask();
  const count = TOGETHER - 20;
  const cpuMs = (after.cpuMs - before.cpuMs) / count;
  console.log(
    `key release, ${AT_ONCE} at once, ${count} in all: ${Math.round((count * 1000) / wallMs)} /s with the guests on the same cores; ` +
      `server ${cpuMs.toFixed(1)} ms of CPU each`,
  );
  const samples = await alone(platform, plans.slice(TOGETHER));
  console.log(
    `key release end to end (TLS key, connection, quote, exchange), ${ALONE} runs: p50 / p95 / max ms ${spread(samples)}`,
  );
  server.disconnect();
}
