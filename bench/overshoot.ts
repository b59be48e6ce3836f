import { readFileSync } from 'node:fs';
import { startTrial, type TrialHarness } from '../test/support/trial.ts';
import { spread } from './statistics.ts';

/** How far over its budget an agent gets before it is dead. */
const RUNS = 10;
const CPU_BUDGET_MS = 5000;
const WALL_BUDGET_MS = 2000;

const usage = (id: string, version: 1 | 2): number => {
  if (version === 1)
    return Number(readFileSync(`/sys/fs/cgroup/cpuacct/docker/${id}/cpuacct.usage`, 'utf8')) / 1e6;
  const stat = readFileSync(`/sys/fs/cgroup/system.slice/docker-${id}.scope/cpu.stat`, 'utf8');
  return Number(stat.match(/usage_usec (\d+)/)?.[1]) / 1000;
};

/** The last CPU reading that the kernel gave before the container was gone: what was used at death. */
async function cpuAtDeath(trial: TrialHarness, script: string): Promise<number> {
  let id = '';
  let last = 0;
  let baseline = Number.NaN;
  const { engine, info } = trial.context;
  const watched: typeof engine = {
    ...engine,
    startExec: async (execId) => {
      baseline = usage(id, info.cgroupVersion);
      return engine.startExec(execId);
    },
    start: async (container) => {
      id = container;
      await engine.start(container);
    },
  };
  const timer = setInterval(() => {
    try {
      last = usage(id, info.cgroupVersion);
    } catch {
      // Not started yet, or gone.
    }
  }, 2);
  trial.context.engine = watched;
  await trial.run({ script, limits: { cpu_budget_ms: CPU_BUDGET_MS } });
  trial.context.engine = engine;
  clearInterval(timer);
  return last - baseline - CPU_BUDGET_MS;
}

const trial = await startTrial();
try {
  const one = 'while :; do :; done';
  const four = 'for i in 1 2 3 4; do while :; do :; done & done; wait';
  for (const [name, script] of [
    ['one process', one],
    ['four under one CPU', four],
  ] as const) {
    const over: number[] = [];
    for (let i = 0; i < RUNS; i++) over.push(await cpuAtDeath(trial, script));
    console.log(
      `CPU overshoot at death, ${name}, budget ${CPU_BUDGET_MS} ms, ${RUNS} runs: p50 / p95 / max ms ${spread(over)}`,
    );
  }
  const late: number[] = [];
  for (let i = 0; i < RUNS; i++) {
    const [rep] = await trial.run({ script: 'sleep 60', limits: { wall_budget_ms: WALL_BUDGET_MS } });
    late.push((rep?.wall_ms ?? Number.NaN) - WALL_BUDGET_MS);
  }
  console.log(
    `wall overshoot, budget ${WALL_BUDGET_MS} ms, ${RUNS} runs: p50 / p95 / max ms ${spread(late)}`,
  );
} finally {
  await trial.close();
}
