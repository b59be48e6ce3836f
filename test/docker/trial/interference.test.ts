import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import type { ContainerSpec, Engine } from '../../../guest/engine/port.ts';
import { hookedEngine } from '../../support/hooked-engine.ts';
import { rejectionCode } from '../../support/throws.ts';
import { RELAY, startTrial, type TrialHarness } from '../../support/trial.ts';
import { ENGINE_SOCKET } from '../fixtures.ts';

const run = promisify(execFile);
const real = connectDocker(ENGINE_SOCKET);

/** A busy machine does not freeze every container at once. */
async function docker(...args: string[]): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    try {
      return await run('docker', args);
    } catch (error) {
      if (tries === 10 || !String(error).includes('unable to freeze')) throw error;
    }
  }
}

let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

/** Somebody else's command on the rep's container, once, right after our first such call on it. */
function meddling(call: keyof Engine, command: readonly string[], delayMs = 0): Engine {
  let done = false;
  let container = '';
  return hookedEngine(real, {
    after: async (name, [id]) => {
      if (name === 'start') container = String(id);
      if (done || name !== call) return;
      done = true;
      const meddle = sleep(delayMs).then(() => docker(...command, container));
      // The agent goes on meanwhile.
      if (name !== 'startExec') await meddle;
    },
  });
}

describe.concurrent('a container that somebody else touches while its agent runs', () => {
  it.each([
    ['paused', ['pause']],
    ['removed', ['rm', '--force']],
    ['restarted', ['restart', '--time', '0']],
  ])('ends the run when %s', async (_, command) => {
    const engine = meddling('startExec', command, 300);
    const promise = trial.run({ script: 'sleep 60', engine, limits: { wall_budget_ms: 2500 } });
    expect(await rejectionCode(promise)).toBe('container_interfered');
  });

  it('is not told from one that ended from inside when it is only killed', async () => {
    const engine = meddling('startExec', ['kill'], 300);
    const [rep] = await trial.run({ script: 'sleep 60', engine });
    expect([rep?.outcome, rep?.failure]).toEqual(['failed', 'liveness']);
  });
});

describe.concurrent('a container of a brokered agent that somebody else touches while the agent runs', () => {
  /** The task's container is the first that is started, the agent's sandbox the second. */
  function meddlingWith(which: 1 | 2, command: readonly string[]): Engine {
    const containers: string[] = [];
    return hookedEngine(real, {
      after: async (name, [id]) => {
        if (name === 'start') containers.push(String(id));
        if (name !== 'startExec' || containers.length !== 2) return;
        void sleep(300).then(() => docker(...command, String(containers[which - 1])));
      },
    });
  }
  const waits = (engine: Engine) =>
    trial.run({ script: 'sleep 60', brokered: RELAY, engine, limits: { wall_budget_ms: 4000 } });

  it.each([
    ['the sandbox is paused', 2, ['pause']],
    ['the sandbox is removed', 2, ['rm', '--force']],
    ['the task is paused', 1, ['pause']],
    ['the task is removed', 1, ['rm', '--force']],
  ] as const)('ends the run when %s', async (_, which, command) => {
    expect(await rejectionCode(waits(meddlingWith(which, command)))).toBe('container_interfered');
  });

  it.each([
    ['the sandbox', 2],
    ['the task', 1],
  ] as const)('is not told from one that ended from inside when %s is only killed', async (_, which) => {
    const [rep] = await waits(meddlingWith(which, ['kill']));
    expect([rep?.outcome, rep?.failure]).toEqual(['failed', 'liveness']);
  });
});

describe.concurrent('a container that somebody else touches between its two lives', () => {
  it.each([
    ['started', ['start']],
    ['removed', ['rm', '--force']],
  ])('ends the run when %s', async (_, command) => {
    const engine = meddling('kill', command);
    const promise = trial.run({ script: 'echo right > /app/answer', engine });
    expect(await rejectionCode(promise)).toBe('container_interfered');
  });
});

describe.concurrent('a container that somebody else touches while its tests run', () => {
  const slow = '#!/bin/bash\nmkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; sleep 60\n';

  it.each([
    ['paused', ['pause'], 3000],
    ['removed', ['rm', '--force'], 30_000],
    ['restarted', ['restart', '--time', '0'], 30_000],
  ])('ends the run when %s', async (_, command, verifierTimeoutMs) => {
    let started = 0;
    const engine = hookedEngine(real, {
      after: async (name, [id]) => {
        if (name !== 'start' || ++started !== 2) return;
        void sleep(700).then(() => docker(...command, String(id)));
      },
    });
    const promise = trial.run({ script: '', test: slow, engine, verifierTimeoutMs });
    expect(await rejectionCode(promise)).toBe('container_interfered');
  });
});

describe.concurrent('before the agent starts', () => {
  it.each([
    ['paused', ['pause']],
    ['removed', ['rm', '--force']],
    ['stopped', ['kill']],
  ])('a container that is %s is made again, and the fault counted', async (_, command) => {
    const counters = { faults: 0 };
    const engine = meddling('start', command);
    const [rep] = await trial.run({ script: 'echo right > /app/answer', engine, counters });
    expect([rep?.outcome, rep?.start_retries, counters.faults]).toEqual(['completed', 1, 1]);
  });

  it('a name that is taken is not waited for', async () => {
    const counters = { faults: 0 };
    let taken = '';
    const engine = hookedEngine(real, {
      before: async (name, [spec]) => {
        if (name !== 'create' || taken !== '') return;
        taken = await real.create({ ...(spec as ContainerSpec), command: ['true'] });
      },
    });
    const [rep] = await trial.run({ script: 'echo right > /app/answer', engine, counters });
    expect([rep?.outcome, rep?.start_retries, counters.faults]).toEqual(['completed', 1, 1]);
    expect(rep?.container_id).not.toBe(taken);
  });
});
