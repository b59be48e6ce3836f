import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, startHolder } from '../../../guest/trial/sandbox.ts';
import { uploadTests } from '../../../guest/trial/verifier-life.ts';
import {
  agentOutputOf,
  containersOf,
  judge,
  judgeBeside,
  judged,
  testOutputOf,
} from '../../support/judged.ts';
import { recordCalls } from '../../support/recording-engine.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';

let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

const SERVE = `mkdir -p /srv/www; echo right > /srv/www/answer
(cd /srv/www; exec python3 -m http.server 8000 --bind 127.0.0.1) >/dev/null 2>&1 &
for i in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null && break; sleep 0.1; done`;
/** Passes when the service that the agent left running answers. */
const ASK = `#!/bin/bash
python3 - <<'EOF'
import urllib.request
try: answer = urllib.request.urlopen('http://127.0.0.1:8000/answer', timeout=20).read().decode().strip()
except OSError: answer = ''
open('/logs/verifier/reward.txt', 'w').write('1' if answer == 'right' else '0')
EOF
`;

it('a holder that is slow to start does not take the tests of a live task for a second life', async () => {
  const { context } = trial;
  const task = trial.taskOf({ script: '', mode: 'live' }).trial;
  const created = await createSandbox(context, task, 'slow-holder', 'control');
  try {
    // As if the holder had looked only now, with the tests already there.
    await uploadTests(context, created, task, [
      { path: 'test.sh', bytes: Buffer.from(ASK), executable: true },
    ]);
    await startHolder(context, created, task);
    await context.clock.sleep(1000);
    expect((await context.engine.inspect(created.containerId)).running).toBe(true);
  } finally {
    await context.engine.remove(created.containerId);
  }
});

describe.concurrent('a live task', () => {
  it('is tested beside the service that its agent left running', async () => {
    expect(await judge(trial, { script: SERVE, test: ASK, mode: 'live' })).toBe('reward 1');
    expect(await judge(trial, { script: 'true', test: ASK, mode: 'live' })).toBe('reward 0');
  });

  it('loses its service with the kill, in any other mode', async () => {
    expect(await judge(trial, { script: SERVE, test: ASK })).toBe('reward 0');
  });

  it('is prepared, tested and killed, in this order, before its reward is read', async () => {
    const { engine, calls } = recordCalls(trial.context.engine);
    const test = '#!/bin/bash\necho 0.5 > /logs/verifier/reward.txt\n';
    const [rep] = await trial.run({ script: 'setsid sleep 1000 &', test, mode: 'live', engine });
    expect([judged(rep), rep?.verifier_mode]).toEqual(['reward 0.5', 'live']);
    const steps = calls.flatMap(({ name, path }) => {
      if (name === 'statPath') return path === '/logs/verifier/reward.txt' ? ['read reward'] : [];
      return ['inspect', 'inspectRaw', 'execState', 'getArchive'].includes(name) ? [] : [name];
    });
    const life = ['putArchive', 'createExec', 'startExec'];
    const start = ['create', 'putArchive', 'start', ...life.slice(1)];
    expect(steps).toEqual([...start, 'writableLayerBytes', ...life, 'kill', 'read reward', 'remove']);
  });

  it('has no network while it is tested', async () => {
    const { context, session } = trial;
    await context.engine.createNetwork(`cvm-eval-${session.id}`, { 'io.cvm-evaluator.session': session.id });
    const test = '#!/bin/bash\nls /sys/class/net; echo 1 > /logs/verifier/reward.txt\n';
    const script = 'ls /sys/class/net; setsid sleep 1000 &';
    expect(await judge(trial, { script, test, mode: 'live', network: 'open', taskId: 'online' })).toBe(
      'reward 1',
    );
    expect(await agentOutputOf(trial, 'online')).toMatch(/eth0/);
    expect(testOutputOf(trial, 'online')).toBe('lo\n');
  });

  it('ends at the timeout of its tests: completed, reward 0', async () => {
    const test = '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\nsleep 600\n';
    const [rep] = await trial.run({ script: 'true', test, mode: 'live', verifierTimeoutMs: 3000 });
    expect([rep?.outcome, judged(rep)]).toEqual(['completed', 'reward 0']);
  });

  it('is ended when it fills the disk while it is tested: reward 0', async () => {
    const script =
      "setsid sh -c 'sleep 1; for i in $(seq 1000); do head -c 4000000 /dev/zero > /app/f$i; sleep 0.1; done' &";
    const test =
      '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n[ ! -e /app/f1 ] && sleep 3; [ ! -e /app/f1 ] || sleep 100\n';
    const limits = { storage_bytes: 32 * 1024 * 1024 };
    const options = { script, test, mode: 'live', limits, diskReserveBytes: 1e15 } as const;
    expect(await judgeBeside(trial, options)).toEqual({ rep: 'reward 0', neighbour: 'reward 1' });
  });

  it.each([
    ['WORKDIR', 'cd /; rm -rf /app; touch /app'],
    ['/etc/passwd, now a pipe', 'rm /etc/passwd; mkfifo /etc/passwd'],
    [
      'the tests as they start',
      `setsid sh -c 'while :; do for p in /proc/[0-9]*; do case $(cat $p/cmdline) in *tests/tes[t].sh*) kill -9 \${p#/proc/};; esac; done; done' 2>/dev/null &`,
    ],
    [
      'whoever prepares the tests',
      `setsid sh -c 'while :; do for p in /proc/[0-9]*; do case $(cat $p/cmdline) in *entry.s[h]live*) kill -9 \${p#/proc/};; esac; done; done' 2>/dev/null &`,
    ],
  ])('is charged with what it broke: %s, reward 0', async (_, sabotage) => {
    const test = '#!/bin/bash\nsleep 1; echo 1 > /logs/verifier/reward.txt\n';
    expect(await judge(trial, { script: sabotage, test, mode: 'live' })).toBe('reward 0');
  });

  it('loses nothing with the shells of its image: the tests have a shell of ours', async () => {
    const test = '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n';
    const script = 'rm -f /bin/bash /usr/bin/bash /bin/sh /usr/bin/sh';
    expect(await judge(trial, { script, test, mode: 'live' })).toBe('reward 1');
  });

  it('fails when its agent ended the container', async () => {
    // A child makes the holder exit after the agent has ended.
    const script = `setsid python3 - <<'EOF' &
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
os.kill(os.getppid(), 0)
libc.ptrace(16, 1, 0, 0)
os.waitpid(1, 0x40000000)
registers = (ctypes.c_ulonglong * 27)()
libc.ptrace(12, 1, 0, ctypes.addressof(registers))
libc.ptrace(4, 1, registers[16], 0x050f)
registers[10], registers[14], registers[15] = 231, 100, 2 ** 64 - 1
libc.ptrace(13, 1, 0, ctypes.addressof(registers))
time.sleep(1)
libc.ptrace(17, 1, 0, 0)
time.sleep(30)
EOF
      sleep 0.5`;
    expect(['liveness', 'malformed_output', 'reward 0']).toContain(
      await judge(trial, { script, test: ASK, mode: 'live' }),
    );
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
