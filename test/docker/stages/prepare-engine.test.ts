import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import { prepareEngine } from '../../../guest/stages/prepare-engine.ts';
import { systemClock } from '../../../guest/trial/clock.ts';
import { LABEL, newSession } from '../../../guest/trial/labels.ts';
import type { TrialTask } from '../../../guest/trial/session.ts';
import { sweepSession } from '../../../guest/trial/sweep.ts';
import { type EngineFault, faultyEngine, isRead } from '../../support/faulty-engine.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { rejectionCode } from '../../support/throws.ts';
import { buildShellToolchain } from '../../support/toolchains.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';
import { ENGINE_SOCKET, ensureTestImage } from '../fixtures.ts';

const real = connectDocker(ENGINE_SOCKET);
const folder = scratchFolder();
const toolchain = join(folder, 'toolchain.tar');
let trial: TrialHarness;
let task: TrialTask;

beforeAll(async () => {
  await buildShellToolchain(toolchain);
  trial = await startTrial();
  task = {
    taskId: 'prepared',
    image: { id: await ensureTestImage(), workdir: '/app', env: ['PATH=/bin'], source: 'built' },
    instruction: Buffer.from(''),
    limits: {
      nano_cpus: 1e9,
      memory_bytes: 64 * 2 ** 20,
      storage_bytes: 64 * 2 ** 20,
      cpu_budget_ms: 1000,
      wall_budget_ms: 1000,
    },
    pids: 64,
    capAdd: [],
    network: 'open',
    env: {},
    files: [],
    verifier: { mode: 'restart', artifactPaths: [], timeoutMs: 60_000, env: {} },
  };
});
afterAll(async () => {
  await trial.close();
});

/** Prepares for one task in a session of its own, and says which calls that took and what was left. */
async function prepare(fault: EngineFault | null) {
  const { engine, calls } = faultyEngine(real, fault);
  const session = newSession(null);
  const counters = { faults: 0 };
  try {
    const base = { ...trial.context, engine, session, counters };
    const context = await prepareEngine(base, toolchain, [task], []);
    const left = (await real.listOwned(LABEL.session)).filter(
      ({ labels }) => labels[LABEL.session] === session.id,
    );
    return { calls, counters, volume: context.toolsVolume, left: left.map(({ kind }) => kind).sort() };
  } finally {
    await sweepSession(real, session, systemClock);
  }
}

describe('prepareEngine', () => {
  it('makes again what one lost answer has broken, whichever changed something, and counts it', async () => {
    const { calls, left } = await prepare(null);
    expect(left).toEqual(['network', 'volume']);
    const all = calls.map((name, i) => ({ name, at: i + 1 }));
    const read = all.find(({ name }) => isRead(name)) ?? { name: 'none', at: 0 };
    const queue = [read, ...all.filter(({ name }) => !isRead(name))];
    expect(queue.length).toBeGreaterThan(8);
    const inTurn = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const told = await prepare({ at: next.at, kind: 'answer_lost', lasts: 'once' });
        const call = `fault at ${next.at} ${next.name}`;
        // A container whose id never came back is the sweep's.
        const named = told.left.filter((object) => object !== 'container');
        expect(named, call).toEqual(['network', 'volume']);
        expect(told.counters.faults, call).toBe(next.at === calls.length ? 0 : 1);
      }
    };
    await Promise.all([inTurn(), inTurn(), inTurn(), inTurn()]);
  });

  it('gives up after as many attempts as the mechanism says', async () => {
    expect(await rejectionCode(prepare({ at: 1, kind: 'not_done', lasts: 'for_good' }))).toBe(
      'engine_timeout',
    );
  });
});
