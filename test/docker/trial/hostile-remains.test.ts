import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge } from '../../support/judged.ts';
import { KINDS, startTrial, type TrialHarness } from '../../support/trial.ts';
import { honestBeside, ITSELF, type Neighbour } from './places.ts';

const RIGHT = 'echo right > /app/answer';
let trial: TrialHarness;
let neighbour: Neighbour;

beforeAll(async () => {
  trial = await startTrial();
  neighbour = honestBeside(trial);
});
afterAll(() => trial.close());

describe.concurrent.each(KINDS)('%s: an agent that breaks what the tests need', (_kind, as) => {
  it.each([
    ['WORKDIR, now a file', 'cd /; rm -rf /app; echo right > /app'],
    ['/etc/passwd, now a pipe', 'rm /etc/passwd; mkfifo /etc/passwd'],
  ])('%s: the control shows that it was the agent, reward 0', async (_, sabotage) => {
    expect(await judge(trial, { ...as, script: `${RIGHT}; ${sabotage}` })).toBe('reward 0');
  });

  it.each([
    ['every shell', 'rm -f /bin/bash /usr/bin/bash /bin/sh /usr/bin/sh /bin/dash'],
    ['the dynamic loader', 'rm -f /lib64/ld-linux-x86-64.so.2 "$(readlink -f /lib64/ld-linux-x86-64.so.2)"'],
    ['/logs and /tests, now links', 'rm -rf /logs /tests; ln -s /app /logs; ln -s /app /tests'],
  ])('%s: its tests still run', async (_, sabotage) => {
    expect(await judge(trial, { ...as, script: `${RIGHT}; ${sabotage}` })).toBe('reward 1');
  });
});

describe.concurrent('an agent that breaks what the tests need in another way', () => {
  it.each([
    ['/etc/group, now a pipe', 'rm /etc/group; mkfifo /etc/group'],
    ['/etc/passwd, now a link to a pipe', 'mkfifo /srv/p; ln -sf ../srv/p /etc/passwd'],
    ['/etc/passwd, now a terminal', 'ln -sf /dev/ptmx /etc/passwd'],
    ['/etc/passwd, now a loop', 'ln -sf passwd /etc/passwd'],
    [
      '/etc/passwd, now 100 MB of accounts',
      'yes root:x:0:0::/root:/bin/sh | head -c 100000000 > /etc/passwd',
    ],
  ])('%s: the control shows that it was the agent, reward 0', async (_, sabotage) => {
    expect(await judge(trial, { script: `${RIGHT}; ${sabotage}` })).toBe('reward 0');
  });

  it.each([
    ['nothing that they need: /etc', 'mv /etc /etc.old; rm -rf /etc; rm -rf /etc/* 2>/dev/null; true'],
    ['/etc/passwd, deleted', 'rm /etc/passwd /etc/group'],
    ['/logs and /tests, now files', 'rm -rf /logs /tests; echo > /logs; echo > /tests'],
    ['/logs/verifier, now a link', 'rm -rf /logs/verifier; ln -s /app /logs/verifier'],
    ['/opt, moved away', 'mv /opt /opt.old; mkdir -p /opt'],
  ])('%s: its tests still run', async (_, sabotage) => {
    expect(await judge(trial, { script: `${RIGHT}; ${sabotage}` })).toBe('reward 1');
  });
});

describe.concurrent('a brokered agent that breaks', () => {
  it('all of its own sandbox: the task is judged by its tests', async () => {
    const script = `cd /; rm -rf /app /logs /task /etc/group; echo > /app; rm /etc/passwd; mkfifo /etc/passwd
      rm -rf /agent-runtime /run "$(readlink -f /lib64/ld-linux-x86-64.so.2)" /bin/bash /usr/bin/bash /bin/sh /usr/bin/sh`;
    expect(await judge(trial, { brokered: ITSELF, script })).toBe('reward 1');
  });

  it('shells and WORKDIR of the task: is told so by its next command, and may mend it', async () => {
    const shell = '/opt/evaluator/busybox';
    const brokered = `class Agent:
    async def run(self, instruction, environment, context):
        await environment.exec("cd /; rm -rf /app; echo > /app; rm -f /bin/bash /usr/bin/bash /bin/sh /usr/bin/sh /bin/dash")
        broken = await environment.exec("true")
        mended = await environment.exec("${shell} rm /app; ${shell} mkdir /app; echo right > /app/answer", cwd="/")
        assert [broken.return_code, mended.return_code] == [126, 0], [broken, mended]
`;
    expect(await judge(trial, { script: '', brokered })).toBe('reward 1');
  });
});

describe.concurrent.each(KINDS)('%s: an agent that plants', (_kind, as) => {
  const REWARD = 'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt';
  const TEST = `#!/bin/bash\\n${REWARD}\\n`;
  it.each([
    [
      'a reward, tests and starts of a second life',
      `mkdir -p d/tests; echo '${REWARD}; exit 100' > d/env; printf '${TEST}' > d/tests/test.sh; chmod 755 d/tests/test.sh
       cp -r d/tests /tests; python3 -c "
import shutil
for n in range(100): shutil.copytree('d', '/.evaluator-%032x' % n)"
       ${REWARD}`,
    ],
    [
      'a reward behind a link, and a tools directory',
      `mkdir /app/l; ln -s /app/l /logs/verifier; ${REWARD}; mv /opt /opt.old; mkdir -p /opt/evaluator
       printf '${TEST}exit 100\\n' > /opt/evaluator/busybox; chmod 755 /opt/evaluator/busybox`,
    ],
  ])('%s, with a wrong answer: reward 0', async (_, plant) => {
    expect(await judge(trial, { ...as, script: `${plant}; echo wrong > /app/answer` })).toBe('reward 0');
  });

  it('a reward, and leaves no shell to write another: reward 0', async () => {
    const script = `${REWARD}; rm -f /bin/bash /usr/bin/bash`;
    expect(await judge(trial, { ...as, script })).toBe('reward 0');
  });

  it('a reward in the other file, a preloaded library and another home: the tests see none of them', async () => {
    const test = `#!/bin/bash
if [ ! -e /etc/ld.so.preload ] && [ "$HOME" = /root ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;
    const script = `mkdir -p /logs/verifier; echo '{"reward": 0}' > /logs/verifier/reward.json
      echo /app/evil.so > /etc/ld.so.preload; export HOME=/app
      sed -i s,:/root:,:/app:, /etc/passwd; printf 'HOME=/app\\nPATH=/app\\n' > /etc/environment`;
    expect(await judge(trial, { ...as, script, test })).toBe('reward 1');
  });
});

describe('afterwards', () => {
  it('the honest reps beside all of them were judged by their tests, and no container is left', async () => {
    expect(await neighbour.end()).toEqual(['reward 1']);
    expect(await containersOf(trial)).toEqual([]);
  });
});
