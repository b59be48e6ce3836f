import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import type { Engine } from '../../../guest/engine/port.ts';
import { hookedEngine } from '../../support/hooked-engine.ts';
import { containersOf, judge, testOutputOf } from '../../support/judged.ts';
import { rejectionCode } from '../../support/throws.ts';
import { type ScriptOptions, startTrial, type TrialHarness } from '../../support/trial.ts';
import { ENGINE_SOCKET, testName } from '../fixtures.ts';

const real = connectDocker(ENGINE_SOCKET);
const IMAGE = `${testName()}:1`;
const MIB = 1024 ** 2;
/** What the image holds where artifacts come from, and beside it. */
const DOCKERFILE = `FROM python:3.11-slim-bookworm
WORKDIR /app
RUN mkdir -p old/deep /srv/data && echo image > old/deep/file && echo image > kept && echo image > /srv/data/kept
`;
let trial: TrialHarness;

beforeAll(async () => {
  execFileSync('docker', ['build', '--quiet', '--tag', IMAGE, '-'], {
    input: DOCKERFILE,
    env: { ...process.env, DOCKER_BUILDKIT: '0' },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  trial = await startTrial({ image: IMAGE });
});
afterAll(async () => {
  await trial.close();
  await real.removeImage(IMAGE);
});

const artifact = (options: ScriptOptions): ScriptOptions => ({ mode: 'artifact', ...options });

/** What a test sees: the output of `look`, run in WORKDIR after the agent's script. */
async function seen(taskId: string, script: string, look: string, more: Partial<ScriptOptions> = {}) {
  const test = `#!/bin/bash\n${look}\necho 1 > /logs/verifier/reward.txt\n`;
  expect(await judge(trial, artifact({ script, test, taskId, ...more }))).toBe('reward 1');
  return testOutputOf(trial, taskId).split('\n').slice(0, -1);
}

describe.concurrent('artifacts', () => {
  it('are all that a fresh container has of an agent', async () => {
    expect(await judge(trial, artifact({ script: 'echo right > answer' }))).toBe('reward 1');
    expect(await judge(trial, artifact({ script: 'echo wrong > answer' }))).toBe('reward 0');
    const script = `echo right > answer
      printf '#!/bin/sh\\necho 1 > /logs/verifier/reward.txt\\nkill -9 $PPID\\n' > /usr/local/bin/cat
      chmod 755 /usr/local/bin/cat; cp /usr/local/bin/cat /usr/bin/cat; cp /bin/true /bin/bash
      echo /app/x.so > /etc/ld.so.preload; mkdir /tests; echo 'exit 0' > /tests/test.sh; touch /srv/here`;
    const test = `#!/bin/bash
ls /srv /etc/ld.so.preload 2>&1
[ "$(cat answer)" = wrong ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
`;
    expect(await judge(trial, artifact({ script, test, taskId: 'forger' }))).toBe('reward 0');
    expect(testOutputOf(trial, 'forger')).not.toMatch(/here|ld.so.preload$/);
  });

  it('take the place of what the image has there: what was deleted is gone', async () => {
    const script = 'rm -rf old; echo agent > new; rm /srv/data/kept';
    const look = 'find . -type f | sort; cat kept; cat /srv/data/kept';
    expect(await seen('deleted', script, look)).toEqual(['./kept', './new', 'image', 'image']);
  });

  it('come from every path that the task names, and from no other', async () => {
    const script = 'echo a > /srv/data/new; mkdir -p /home/u/out; echo b > /home/u/out/x; echo c > /app/y';
    const look = 'cat /srv/data/* /home/u/out/x; ls /app';
    const artifactPaths = ['/srv/data', '/home/u/out'];
    expect(await seen('paths', script, look, { artifactPaths })).toEqual(['image', 'a', 'b', 'kept', 'old']);
  });

  it('are regular files and directories only, as they are but for privileges', async () => {
    const script = `rm -rf old kept; mkdir d; echo x > d/f; ln -s d/f soft; ln -s / root; ln d/f hard; mkfifo p
      python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('s')"
      cp /bin/true tool; chmod 6755 tool; chmod 3770 d; chown 7:4000000 d/f; touch -d @1000000000 d/f
      mkdir -p ${'long/'.repeat(30)}; echo deep > ${'long/'.repeat(30)}file
      printf x > "$(printf 'a\\033b\\377')"; printf x > A; printf x > a`;
    const look = `find . -mindepth 1 -maxdepth 2 ! -name long -printf '%p %y %#m %U:%G %Ts\\n' | tr -d '\\033\\377' | sort |
      sed -E '/f f/!s/ [0-9]+$//'; cat ${'long/'.repeat(30)}file`;
    expect(await seen('kinds', script, look)).toEqual([
      './A f 0644 0:0',
      './a f 0644 0:0',
      './ab f 0644 0:0',
      './d d 0770 0:0',
      './d/f f 0644 7:4000000 1000000000',
      './tool f 0755 0:0',
      'deep',
    ]);
  });

  it.each([
    ['a link', 'cd /; mv /app /srv/app; ln -s /srv/app /app'],
    ['a file', 'cd /; rm -rf /app; echo > /app'],
    ['nothing', 'cd /; rm -rf /app'],
  ])('of a WORKDIR that is %s are a wrong answer', async (_, script) => {
    expect(await judge(trial, artifact({ script: `echo right > answer; ${script}` }))).toBe('reward 0');
  });

  it('below a link are absent', async () => {
    const script = 'mv /srv /var/moved; ln -s /var/moved /srv; echo x > /srv/data/new';
    const artifactPaths = ['/srv/data'];
    expect(await seen('parent', script, 'ls /srv/data 2>&1 | wc -l', { artifactPaths })).toEqual(['1']);
  });

  it('are carried over when the last agent of the task has ended, for each rep', async () => {
    const reps = await trial.run(artifact({ script: 'echo right > answer', reps: 2, taskId: 'two' }));
    expect(reps.map((rep) => rep.verifier_mode)).toEqual(['artifact', 'artifact']);
    expect((await containersOf(trial)).filter((name) => name.includes('two'))).toEqual([]);
  });
});

describe.concurrent('more than may be carried over', () => {
  const storage = { limits: { storage_bytes: 64 * MIB } };
  it.each<[string, string, string, Partial<ScriptOptions>]>([
    [
      'holes of a terabyte',
      'python3 -c "for n in range(18000): open(str(n), \'w\').truncate(60 << 20)"',
      'disk_limit',
      storage,
    ],
    ['files above storage_mb', 'for n in 1 2 3; do truncate -s 30M $n; done', 'disk_limit', storage],
    [
      'sixty thousand names',
      'python3 -c "import os\nfor n in range(60000): os.symlink(\'x\', str(n))"',
      'malformed_output',
      {},
    ],
    [
      'directories 1500 deep',
      "python3 -c \"import os\nfor n in range(1500): os.mkdir('d'); os.chdir('d')\"",
      'malformed_output',
      {},
    ],
  ])('is a failure of its rep: %s', async (_, script, expected, more) => {
    expect(await judge(trial, artifact({ script, ...more }))).toBe(expected);
  });
});

describe("an agent's container that somebody else touches before its artifacts are read", () => {
  it.each([
    ['started', ['start']],
    ['removed', ['rm', '--force']],
  ])('ends the run when %s', async (_, command) => {
    const engine: Engine = hookedEngine(real, {
      after: async (name, [id]) => {
        if (name === 'kill') execFileSync('docker', [...command, String(id)], { stdio: 'ignore' });
      },
    });
    const run = trial.run(artifact({ script: 'echo right > answer', engine }));
    expect(await rejectionCode(run)).toBe('container_interfered');
  });
});
