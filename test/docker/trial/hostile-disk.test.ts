import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge } from '../../support/judged.ts';
import { ANSWER_TEST, KINDS, startTrial, type TrialHarness } from '../../support/trial.ts';
import { honestBeside, type Neighbour, PLACES } from './places.ts';

const MIB = 1024 * 1024;
const RIGHT = 'echo right > /app/answer';
/** Of the task's container; a sandbox has 1 GiB. */
const limits = { storage_bytes: 32 * MIB };
/** Many files, none above the limit of one, until somebody ends it. */
const FILL = 'for i in $(seq 1000); do head -c 4000000 /dev/zero > /app/fill$i; sleep 0.1; done';
let trial: TrialHarness;
let neighbour: Neighbour;

beforeAll(async () => {
  trial = await startTrial();
  neighbour = honestBeside(trial);
});
afterAll(() => trial.close());

describe.concurrent.each(PLACES)('%s: an agent that fills the disk', (place, as) => {
  const own = place === 'brokered, itself';
  /** Thirtieths of what it is given, written or, of a sandbox's gigabyte, promised. */
  const write = (parts: number, path: string) =>
    own ? `truncate -s ${parts * 34}M ${path}` : `head -c ${parts}000000 /dev/zero > ${path}`;

  it('is ended while it writes, when the disk runs low', async () => {
    const script = own
      ? `for i in $(seq 100); do ${write(4, '/app/fill$i')}; sleep 0.1; done; sleep 60`
      : FILL;
    expect(await judge(trial, { ...as, script, limits, diskReserveBytes: 1e15 })).toBe('disk_limit');
  });

  it('may write what it is given, even then', async () => {
    const script = `${write(20, '/app/fill')}; sleep 1; ${RIGHT}`;
    expect(await judge(trial, { ...as, script, limits, diskReserveBytes: 1e15 })).toBe('reward 1');
  });

  it.each([
    ['in many files', `for i in 1 2 3 4 5 6; do ${write(10, '/app/f$i')}; done`],
    ["in the engine's own files", `for f in hosts hostname resolv.conf; do ${write(15, '/etc/$f')}; done`],
    [
      'in directories too deep to be measured',
      `python3 -c "
import os
for n in range(3000): os.mkdir('d'); os.chdir('d')"`,
    ],
  ])('is over its storage when it has ended: %s', async (_, script) => {
    expect(await judge(trial, { ...as, script: `${script}; ${RIGHT}`, limits })).toBe('disk_limit');
  });
});

describe.concurrent.each(KINDS)('%s: an agent with large or many files', (kind, as) => {
  it('is over its storage with sparse ones, which cost as much to copy', async () => {
    const script = `truncate -s 30M /app/a; truncate -s 30M /app/b; ${RIGHT}`;
    expect(await judge(trial, { ...as, script, limits })).toBe('disk_limit');
  });

  it('cannot make a file larger than its storage', async () => {
    const script = `truncate -s 200G /app/big || truncate -s 200M /app/big; ${RIGHT}`;
    expect(await judge(trial, { ...as, script })).toBe('reward 1');
  });

  it('may leave a sparse one of 200 GB within its storage: nothing is copied', async () => {
    const taskId = `sparse ${kind}`;
    const script = `truncate -s 200G /app/big; ${RIGHT}`;
    const [rep] = await trial.run({ ...as, script, taskId, limits: { storage_bytes: 300e9 } });
    expect(rep?.outcome).toBe('completed');
    const { phases } = trial.finished.find((done) => done.taskId === taskId)?.first ?? {};
    expect(phases?.overheadMs()).toBeLessThan(60_000);
  });

  it('may leave very many, and directories 1500 deep: is measured, verified and removed', async () => {
    // Of a brokered one a tenth: they lie in the same container, and cost seconds of CPU.
    const many = kind === 'container' ? 100_000 : 10_000;
    const script = `mkdir -p /logs/verifier /tests; python3 -c "
import os
for n in range(${many}): open('/logs/verifier/%d' % n, 'w').close()
for top in ('/tests', '/logs/verifier'):
    os.chdir(top)
    for n in range(1500): os.mkdir('d'); os.chdir('d')"
      ${RIGHT}`;
    const wall = { wall_budget_ms: 150_000 };
    const options = { ...as, script, limits: wall, verifierTimeoutMs: 150_000 };
    expect(await judge(trial, options)).toBe('reward 1');
  });
});

describe.concurrent('what an agent left', () => {
  it('is ended in its second life too, and the reward is 0', async () => {
    const script = `${RIGHT}; rm /app/fill*; printf '#!/opt/evaluator/busybox sh\\n${FILL}\\n' > /app/program
      chmod 755 /app/program`;
    const started = Date.now();
    const result = await judge(trial, {
      script,
      // As tests do that try what was written.
      test: `${ANSWER_TEST}[ ! -x /app/program ] || /app/program\n`,
      limits,
      diskReserveBytes: 1e15,
    });
    expect(result).toBe('reward 0');
    // Long before the 100 s that it would take to its end.
    expect(Date.now() - started).toBeLessThan(50_000);
  });
});

describe('afterwards', () => {
  it('the honest reps beside all of them were judged by their tests, and no container is left', async () => {
    expect(await neighbour.end()).toEqual(['reward 1']);
    expect(await containersOf(trial)).toEqual([]);
  });
});
