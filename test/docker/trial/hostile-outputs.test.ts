import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge, testOutputOf } from '../../support/judged.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';

const GIB = 1024 ** 3;
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

/** What the tests leave in /logs/verifier; `ok` is a file that would be a good reward. */
const verifier = (script: string) => `#!/bin/bash
cd /logs/verifier && echo 1 > /app/ok
${script}
`;

describe.concurrent('a reward', () => {
  it.each([
    ['1', 'echo 1 > reward.txt', 'reward 1'],
    ['a fraction', 'echo 0.75 > reward.txt', 'reward 0.75'],
    ['a JSON document', 'echo \'{"reward": 0.5}\' > reward.json', 'reward 0.5'],
  ])('%s counts', async (_, script, expected) => {
    expect(await judge(trial, { script: '', test: verifier(script) })).toBe(expected);
  });

  it.each([
    ['a link', 'ln -s /app/ok reward.txt'],
    ['a link out of the container', 'ln -s ../../../../../../etc/hostname reward.txt'],
    ['a loop of links', 'ln -s reward.txt reward.txt'],
    ['below a link', 'cd /; rm -rf /logs/verifier; mv /app/ok /app/reward.txt; ln -s /app /logs/verifier'],
    ['a pipe', 'mkfifo reward.txt'],
    ['a socket', 'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'reward.txt\')"'],
    ['a directory', 'mkdir reward.txt; cp /app/ok reward.txt/reward.txt'],
    ['empty', ': > reward.txt'],
    ['1 GB', 'cp /app/ok reward.txt; fallocate -l 1G reward.txt'],
    ['a sparse file of 1 TiB', 'cp /app/ok reward.txt; truncate -s 1T reward.txt'],
    ['behind a byte order mark', "printf '\\xef\\xbb\\xbf1\\n' > reward.txt"],
    ['with a carriage return', "printf '1\\r\\n' > reward.txt"],
    ['NaN', 'echo NaN > reward.txt'],
    ['1e999', 'echo 1e999 > reward.txt'],
    ['above 1', 'echo 1.5 > reward.txt'],
    ['on two lines', "printf '1\\n1\\n' > reward.txt"],
    ['in both files', 'echo 1 > reward.txt; echo \'{"reward": 1}\' > reward.json'],
    ['in a document with more in it', 'echo \'{"reward": 1, "__proto__": {}}\' > reward.json'],
  ])('%s is 0', async (_, script) => {
    const started = Date.now();
    const limits = { storage_bytes: 2048 * GIB };
    expect(await judge(trial, { script: '', test: verifier(script), limits })).toBe('reward 0');
    expect(Date.now() - started).toBeLessThan(60_000);
  });

  it('is found among ten thousand other files and 1500 levels', async () => {
    const script = `python3 -c "
import os
for n in range(10000): open(str(n), 'w').close()
open('reward.txt', 'w').write('1')
for n in range(1500): os.mkdir('d'); os.chdir('d')"`;
    expect(await judge(trial, { script: '', test: verifier(script) })).toBe('reward 1');
  });
});

describe.concurrent('what the tests print', () => {
  it('may be a flood: their reward counts, and no more than a megabyte is read', async () => {
    const test = verifier('head -c 100000000 /dev/zero; echo 1 > reward.txt');
    expect(await judge(trial, { script: '', test, taskId: 'flooded' })).toBe('reward 1');
    expect(testOutputOf(trial, 'flooded').length).toBeLessThanOrEqual(1024 * 1024);
  });

  it("may be a flood of the agent's program: it ends at the storage limit, and the reward is 0", async () => {
    const test = verifier('[ ! -x /app/program ] || /app/program; echo 1 > reward.txt');
    const script = "printf '#!/bin/sh\\nexec cat /dev/zero\\n' > /app/program; chmod 755 /app/program";
    const limits = { storage_bytes: 64 * 1024 * 1024 };
    expect(await judge(trial, { script, test, limits })).toBe('reward 0');
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
