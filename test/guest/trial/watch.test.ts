import { describe, expect, it } from 'vitest';
import type { ContainerState, Engine } from '../../../guest/engine/port.ts';
import { EvaluatorError } from '../../../guest/errors.ts';
import type { Sandbox } from '../../../guest/trial/sandbox.ts';
import type { TrialContext } from '../../../guest/trial/session.ts';
import { Watch } from '../../../guest/trial/watch.ts';

const STATE: ContainerState = {
  id: 'c',
  imageId: 'i',
  status: 'running',
  running: true,
  paused: false,
  oomKilled: false,
  exitCode: 0,
  pid: 1,
  startedAt: 't',
  restartCount: 0,
};
const EXITED: ContainerState = { ...STATE, status: 'exited', running: false, exitCode: 137 };
const LIMITS = {
  nano_cpus: 1e9,
  memory_bytes: 1,
  storage_bytes: 1,
  cpu_budget_ms: 60_000,
  wall_budget_ms: 60_000,
};

/** An engine that learns at `exitedAtMs` that the container has ended, on a clock that sleeping moves. */
function watch(options: {
  exitedAtMs: number;
  oomKilled?: boolean;
  lateByMs?: number;
  counters: 'read' | 'gone';
}) {
  let nowMs = 0;
  let reads = 0;
  const engine = {
    inspect: async () =>
      nowMs < options.exitedAtMs ? STATE : { ...EXITED, oomKilled: options.oomKilled ?? false },
    execState: async () => ({ running: nowMs < 1000, exitCode: nowMs < 1000 ? null : 137, pid: 7 }),
  } as Partial<Engine> as Engine;
  const read = () => {
    // The first one is the baseline, before the agent starts.
    if (options.counters === 'gone' && reads++ > 0) throw new EvaluatorError('cgroup_unreadable', 'gone');
    return { cpuUsec: 0, memoryPeakBytes: 1, oomKills: 0, throttledMs: 0 };
  };
  const clock = {
    monotonicMs: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms + (options.lateByMs ?? 0);
    },
  };
  const { signal } = new AbortController();
  const context = {
    engine,
    clock,
    signal,
    diskPath: '/',
    diskReserveBytes: 0,
  } as Partial<TrialContext> as TrialContext;
  const sandbox = { containerId: 'c', cgroup: { read } } as Partial<Sandbox> as Sandbox;
  return new Watch(context, [{ sandbox, limits: LIMITS }], LIMITS).untilEnd('exec', new Promise(() => {}));
}

describe('a container that is ended from inside', () => {
  it('has left Running some time after its counters are gone', async () => {
    expect(await watch({ exitedAtMs: 2000, counters: 'gone' })).toMatchObject({ cause: 'container_ended' });
    expect(await watch({ exitedAtMs: 2000, oomKilled: true, counters: 'gone' })).toMatchObject({
      containerOomKilled: true,
    });
  });

  it('is told from an agent that was killed alone, although its exec is seen to end first', async () => {
    expect(await watch({ exitedAtMs: 1300, counters: 'read' })).toMatchObject({ cause: 'container_ended' });
    expect(await watch({ exitedAtMs: 1e9, counters: 'read' })).toMatchObject({
      cause: 'agent_ended',
      exitCode: 137,
    });
  });
});

describe("the machine's own faults", () => {
  it('are counters that cannot be read while the container goes on running', async () => {
    await expect(watch({ exitedAtMs: 1e9, counters: 'gone' })).rejects.toMatchObject({
      code: 'cgroup_unreadable',
    });
  });

  it('are timers that fire a second late', async () => {
    await expect(watch({ exitedAtMs: 1e9, lateByMs: 1001, counters: 'read' })).rejects.toMatchObject({
      code: 'timer_late',
    });
  });
});

describe('the two containers of a brokered agent', () => {
  const containers = (agentCpuMs: number, taskCpuMs: number) => {
    let reads = 0;
    return [agentCpuMs, taskCpuMs].map((cpuMs, index) => {
      // The first reading of each is the baseline.
      const read = () => ({
        cpuUsec: reads++ < 2 ? 0 : cpuMs * 1000,
        memoryPeakBytes: 10 + index,
        oomKills: reads > 2 ? index : 0,
        throttledMs: 1,
      });
      const sandbox = { containerId: `c${index}`, cgroup: { read } } as Partial<Sandbox> as Sandbox;
      return { sandbox, limits: { ...LIMITS, nano_cpus: 0.5e9 } };
    });
  };
  const seen = (agentCpuMs: number, taskCpuMs: number) => {
    let nowMs = 0;
    const context = {
      engine: {
        inspect: async () => STATE,
        execState: async () => ({ running: nowMs < 1000, exitCode: nowMs < 1000 ? null : 0, pid: 7 }),
      } as Partial<Engine> as Engine,
      clock: {
        monotonicMs: () => nowMs,
        sleep: async (ms: number) => {
          nowMs += ms;
        },
      },
      signal: new AbortController().signal,
      diskPath: '/',
      diskReserveBytes: 0,
    } as Partial<TrialContext> as TrialContext;
    const watch = new Watch(context, containers(agentCpuMs, taskCpuMs), LIMITS);
    return watch.untilEnd('exec', new Promise(() => {}));
  };

  it('are charged together: CPU time, peaks and OOM kills are sums', async () => {
    expect(await seen(20_000, 30_000)).toMatchObject({
      cause: 'agent_ended',
      cpuMs: 50_000,
      memoryPeakBytes: 21,
      oomKills: 1,
    });
  });

  it('have one CPU budget, which neither alone need exceed', async () => {
    expect(await seen(30_000, 30_000)).toMatchObject({ cause: 'cpu_budget' });
  });
});
