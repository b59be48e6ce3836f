import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge, judged } from '../../support/judged.ts';
import { KINDS, startTrial, type TrialHarness } from '../../support/trial.ts';
import { honestBeside, type Neighbour, PLACES } from './places.ts';

const MIB = 1024 * 1024;
const RIGHT = 'echo right > /app/answer';
let trial: TrialHarness;
let neighbour: Neighbour;

beforeAll(async () => {
  trial = await startTrial();
  neighbour = honestBeside(trial);
});
afterAll(() => trial.close());

describe.concurrent.each(PLACES)('%s: CPU', (_place, as) => {
  it('ends a full-core runaway and charges what it used', async () => {
    const limits = { cpu_budget_ms: 1000 };
    const [rep] = await trial.run({ ...as, script: 'while :; do :; done', limits });
    expect(rep?.failure).toBe('cpu_budget');
    expect(rep?.cpu_ms).toBeGreaterThanOrEqual(1000);
    expect(rep?.cpu_ms).toBeLessThan(3000);
  });

  it('is counted of children that have ended: a second over is over', async () => {
    const child = 'python3 -c "import time\nwhile time.process_time() < 0.2: pass"';
    const script = `for i in 1 2 3 4 5 6 7 8 9 10; do ${child}; done; ${RIGHT}`;
    expect(await judge(trial, { ...as, script, limits: { cpu_budget_ms: 1000 } })).toBe('cpu_budget');
  });

  it('is counted of four busy processes under one CPU', async () => {
    const script = 'for i in 1 2 3 4; do while :; do :; done & done; wait';
    expect(await judge(trial, { ...as, script, limits: { cpu_budget_ms: 1000 } })).toBe('cpu_budget');
  });
});

describe.concurrent.each(PLACES)('%s: wall', (_place, as) => {
  it('ends a sleeper that ignores SIGTERM', async () => {
    const script = 'trap "" TERM; sleep 600 & wait';
    const [rep] = await trial.run({ ...as, script, limits: { wall_budget_ms: 2000 } });
    expect(rep?.failure).toBe('wall_backstop');
    expect(rep?.wall_ms).toBeGreaterThanOrEqual(2000);
    expect(rep?.wall_ms).toBeLessThan(60_000);
  });
});

describe.concurrent.each(PLACES)('%s: memory', (_place, as) => {
  /** Above what either container has: the task's these 64 MiB, a sandbox 1 GiB. */
  const eat = 'python3 -c "x = [bytearray(64 << 20) for _ in range(40)]"';
  const limits = { memory_bytes: 64 * MIB };

  it('is memory_limit when the agent itself is killed for it', async () => {
    const [rep] = await trial.run({ ...as, script: `exec ${eat}`, limits });
    expect([rep?.failure, (rep?.oom_kills ?? 0) > 0]).toEqual(['memory_limit', true]);
  });

  it('is only counted when a child is killed and the agent goes on', async () => {
    const [rep] = await trial.run({ ...as, script: `${eat}; ${RIGHT}; exit 0`, limits });
    expect([judged(rep), (rep?.oom_kills ?? 0) > 0]).toEqual(['reward 1', true]);
  });

  it('fails an agent that fakes 137 after an OOM kill', async () => {
    const [rep] = await trial.run({ ...as, script: `${eat}; exit 137`, limits });
    expect(rep?.failure).toBe('memory_limit');
  });
});

describe.concurrent.each(KINDS)('a %s agent', (_kind, as) => {
  it('is judged by its tests', async () => {
    expect(await judge(trial, { ...as, script: 'echo wrong > /app/answer' })).toBe('reward 0');
  });

  // Of a brokered one the command in the task's container and the agent itself end so.
  it.each([137, 124, 126, 143])('may exit with %i: the code proves nothing', async (code) => {
    expect(await judge(trial, { ...as, script: `${RIGHT}; exit ${code}` })).toBe('reward 1');
  });

  it('whose command is not there is agent_start', async () => {
    expect(await judge(trial, { ...as, script: '', command: ['/agent/absent'] })).toBe('agent_start');
  });
});

describe.concurrent('a brokered agent is charged what both of its containers use', () => {
  /** Half of the budget there, half here. */
  const halves = (there: string, here: string) => `import time
class Agent:
    async def run(self, instruction, environment, context):
        await environment.exec("${there}")
        ${here}
`;

  it('CPU', async () => {
    const there = "python3 -c 'import time\\nwhile time.process_time() < 0.8: pass'";
    const brokered = halves(there, 'while time.process_time() < 0.8: pass');
    const [rep] = await trial.run({ script: '', brokered, limits: { cpu_budget_ms: 1500 } });
    expect([judged(rep), (rep?.cpu_ms ?? 0) >= 1500]).toEqual(['cpu_budget', true]);
  });

  it('memory', async () => {
    const there = "python3 -c 'bytearray(100 << 20)'";
    const [rep] = await trial.run({ script: '', brokered: halves(there, 'bytearray(100 << 20)') });
    expect(rep?.memory_peak_bytes).toBeGreaterThan(200 * MIB);
  });

  it('wall, of a command that never ends', async () => {
    const brokered = halves('trap \\"\\" TERM; sleep 600', 'pass');
    expect(await judge(trial, { script: '', brokered, limits: { wall_budget_ms: 3000 } })).toBe(
      'wall_backstop',
    );
  });
});

describe('afterwards', () => {
  it('the honest reps beside all of them were judged by their tests, and no container is left', async () => {
    expect(await neighbour.end()).toEqual(['reward 1']);
    expect(await containersOf(trial)).toEqual([]);
  });
});
