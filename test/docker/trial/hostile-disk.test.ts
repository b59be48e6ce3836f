import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge, judgeBeside } from '../../support/judged.ts';
import { ANSWER_TEST, startTrial, type TrialHarness } from '../../support/trial.ts';

const MIB = 1024 * 1024;
const RIGHT = 'echo right > /app/answer';
/** Many files, none above the limit of one, until somebody ends it. */
const FILL = 'for i in $(seq 1000); do head -c 4000000 /dev/zero > /app/fill$i; sleep 0.1; done';
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

describe.concurrent('an agent that fills the disk', () => {
  it('is ended while it writes, when the disk runs low', async () => {
    const limits = { storage_bytes: 32 * MIB };
    expect(await judgeBeside(trial, { script: FILL, limits, diskReserveBytes: 1e15 })).toEqual({
      rep: 'disk_limit',
      neighbour: 'reward 1',
    });
  });

  it('may write what it is given, even then', async () => {
    const script = `head -c 20000000 /dev/zero > /app/fill; sleep 1; ${RIGHT}`;
    const limits = { storage_bytes: 32 * MIB };
    expect(await judge(trial, { script, limits, diskReserveBytes: 1e15 })).toBe('reward 1');
  });

  it.each([
    ['in many files', 'for i in 1 2 3 4 5 6; do head -c 10000000 /dev/zero > /app/f$i; done'],
    ['in sparse files, which cost as much to copy', 'truncate -s 30M /app/a; truncate -s 30M /app/b'],
    [
      "in the engine's own files",
      'for f in hosts hostname resolv.conf; do head -c 15000000 /dev/zero > /etc/$f; done',
    ],
    [
      'in directories too deep to be measured',
      `python3 -c "
import os
for n in range(3000): os.mkdir('d'); os.chdir('d')"`,
    ],
  ])('is over its storage when it has ended: %s', async (_, script) => {
    const limits = { storage_bytes: 32 * MIB };
    expect(await judge(trial, { script: `${script}; ${RIGHT}`, limits })).toBe('disk_limit');
  });

  it('cannot make a file larger than its storage', async () => {
    const script = `truncate -s 200G /app/big || truncate -s 200M /app/big; ls -s /app; ${RIGHT}`;
    expect(await judge(trial, { script })).toBe('reward 1');
  });

  it('may leave a sparse file of 200 GB within its storage: nothing is copied', async () => {
    const script = `truncate -s 200G /app/big; ${RIGHT}`;
    const [rep] = await trial.run({ script, taskId: 'sparse', limits: { storage_bytes: 300e9 } });
    expect(rep?.outcome).toBe('completed');
    const { phases } = trial.finished.find((done) => done.taskId === 'sparse')?.first ?? {};
    expect(phases?.overheadMs()).toBeLessThan(60_000);
  });

  it('is ended in its second life too, and the reward is 0', async () => {
    const script = `${RIGHT}; rm /app/fill*; printf '#!/opt/evaluator/busybox sh\\n${FILL}\\n' > /app/program
      chmod 755 /app/program`;
    const started = Date.now();
    const result = await judgeBeside(trial, {
      script,
      // As tests do that try what was written.
      test: `${ANSWER_TEST}[ ! -x /app/program ] || /app/program\n`,
      limits: { storage_bytes: 32 * MIB },
      diskReserveBytes: 1e15,
    });
    expect(result).toEqual({ rep: 'reward 0', neighbour: 'reward 1' });
    // Long before the 100 s that it would take to its end.
    expect(Date.now() - started).toBeLessThan(50_000);
  });

  it('with a hundred thousand files and directories 1500 deep: is measured, verified and removed', async () => {
    const script = `mkdir -p /logs/verifier /tests; python3 -c "
import os
for n in range(100000): open('/logs/verifier/%d' % n, 'w').close()
for top in ('/tests', '/logs/verifier'):
    os.chdir(top)
    for n in range(1500): os.mkdir('d'); os.chdir('d')"
      ${RIGHT}`;
    expect(await judgeBeside(trial, { script })).toEqual({ rep: 'reward 1', neighbour: 'reward 1' });
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
