import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge, judgeBeside, judged } from '../../support/judged.ts';
import { recordCalls } from '../../support/recording-engine.ts';
import { KINDS, startTrial, type TrialHarness } from '../../support/trial.ts';

const MIB = 1024 * 1024;
const RIGHT = 'echo right > /app/answer';
/** Kills what the holder waits for, without starting a process of its own. */
const KILL_HOLDERS_SLEEP = `for p in /proc/[0-9]*; do
  read -r comm < $p/comm 2>/dev/null || continue
  if [ "$comm" = busybox ] && [ "$p" != /proc/1 ]; then kill -9 "\${p#/proc/}"; fi
done 2>/dev/null`;
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

describe.concurrent.each(KINDS)('a %s agent that attacks the holder', (_kind, as) => {
  it.each([
    [
      'terminates it',
      `for s in TERM HUP INT QUIT USR1 USR2 SEGV ALRM; do kill -$s 1; done; sleep 1; ${RIGHT}`,
    ],
    ['kills it', `kill -9 1; kill -STOP 1; sleep 1; ${RIGHT}`],
    ['kills every process, itself included', `${RIGHT}; python3 -c 'import os; os.kill(-1, 9)'; sleep 60`],
    ['kills its sleep, again and again', `for i in 1 2 3 4 5; do ${KILL_HOLDERS_SLEEP}; done; ${RIGHT}`],
  ])('%s is judged by its tests', async (_, script) => {
    expect(await judgeBeside(trial, { ...as, script })).toEqual({ rep: 'reward 1', neighbour: 'reward 1' });
  });

  it('has no process left for it to sleep with, and is judged by its tests', async () => {
    // Its sleep is killed while others wait for every process that becomes free.
    const script = `${RIGHT}; exec python3 - <<'EOF'
import os, signal, time
end = time.monotonic() + 3
def bomb():
    while time.monotonic() < end:
        try:
            if os.fork() == 0: time.sleep(1000)
        except OSError: pass
    os._exit(0)
for _ in range(4):
    if os.fork() == 0: bomb()
while time.monotonic() < end:
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and name != '1' and open('/proc/%s/comm' % name).read() == 'busybox\\n': os.kill(int(name), 9)
        except OSError: pass
EOF`;
    expect(await judgeBeside(trial, { ...as, script, pids: 48 })).toEqual({
      rep: 'reward 1',
      neighbour: 'reward 1',
    });
  });

  it('makes it exit like a verification that has ended, which fails the rep', async () => {
    // ptrace within the container is allowed; rax 231 is exit_group.
    const script = `python3 - <<'EOF'
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
assert libc.ptrace(16, 1, 0, 0) == 0
os.waitpid(1, 0x40000000)
registers = (ctypes.c_ulonglong * 27)()
libc.ptrace(12, 1, 0, ctypes.addressof(registers))
libc.ptrace(4, 1, registers[16], 0x050f)
registers[10], registers[14], registers[15] = 231, 100, 2 ** 64 - 1
libc.ptrace(13, 1, 0, ctypes.addressof(registers))
libc.ptrace(17, 1, 0, 0)
time.sleep(30)
EOF
      ${RIGHT}`;
    expect(await judgeBeside(trial, { ...as, script })).toEqual({ rep: 'liveness', neighbour: 'reward 1' });
  });
});

describe.concurrent.each(KINDS)('a %s agent that takes what there is', (_kind, as) => {
  it('forks without end: ends at a budget', async () => {
    const script = ':(){ :|:& };:; while :; do :; done';
    const { rep, neighbour } = await judgeBeside(trial, {
      ...as,
      script,
      pids: 64,
      limits: { cpu_budget_ms: 3000, wall_budget_ms: 8000 },
    });
    expect(['cpu_budget', 'wall_backstop']).toContain(rep);
    expect(neighbour).toBe('reward 1');
  });

  it('fills /dev/shm, which is memory: memory_limit', async () => {
    const script = `exec python3 -c "
f = open('/dev/shm/x', 'wb')
while True: f.write(bytes(1 << 20)); f.flush()"`;
    const limits = { memory_bytes: 32 * MIB };
    expect(await judgeBeside(trial, { ...as, script, limits })).toEqual({
      rep: 'memory_limit',
      neighbour: 'reward 1',
    });
  });

  it('writes a line of 300 MB to stdout: it is not kept', async () => {
    const before = process.memoryUsage().rss;
    let peak = before;
    const sampler = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 50);
    const script = `head -c 300000000 /dev/zero; ${RIGHT}`;
    const result = await judgeBeside(trial, { ...as, script });
    clearInterval(sampler);
    expect(result).toEqual({ rep: 'reward 1', neighbour: 'reward 1' });
    expect(peak - before).toBeLessThan(150 * MIB);
  });

  it('leaves a child that holds its stdout: is over when it has ended itself', async () => {
    const script = `setsid sleep 1000 & ${RIGHT}`;
    const [rep] = await trial.run({ ...as, script });
    expect([rep?.outcome, (rep?.wall_ms ?? 0) < 30_000]).toEqual(['completed', true]);
  });

  it('leaves a writer behind: it is dead before the tests look', async () => {
    const test = `#!/bin/bash
first=$(cat /app/beat); sleep 0.5; second=$(cat /app/beat)
if [ -n "$first" ] && [ "$first" = "$second" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;
    const script =
      '(while :; do echo $RANDOM$RANDOM > /app/beat.new; mv /app/beat.new /app/beat; done) & sleep 1';
    expect(await judge(trial, { ...as, script, test })).toBe('reward 1');
  });
});

describe('an agent that closes its streams and goes on', () => {
  it('has the engine asked now and then only', async () => {
    const { engine, calls } = recordCalls(trial.context.engine);
    const script = `exec </dev/null >&- 2>&-; sleep 4; ${RIGHT}`;
    const [rep] = await trial.run({ script, engine });
    expect(judged(rep)).toBe('reward 1');
    // A quarter of a second apart, after a few that follow on the end of the streams.
    const most = Math.ceil((rep?.wall_ms ?? 0) / 250) + 12;
    expect(calls.filter(({ name }) => name === 'execState').length).toBeLessThan(most);
    expect(calls.filter(({ name }) => name === 'startExec')).toHaveLength(1);
  });
});

describe.concurrent('an agent that breaks what the tests need', () => {
  it.each([
    ['WORKDIR, now a file', 'cd /; rm -rf /app; echo right > /app'],
    ['/etc/passwd, now a pipe', 'rm /etc/passwd; mkfifo /etc/passwd'],
    ['/etc/group, now a pipe', 'rm /etc/group; mkfifo /etc/group'],
    ['/etc/passwd, now a link to a pipe', 'mkfifo /srv/p; ln -sf ../srv/p /etc/passwd'],
    ['/etc/passwd, now a terminal', 'ln -sf /dev/ptmx /etc/passwd'],
    ['/etc/passwd, now a loop', 'ln -sf passwd /etc/passwd'],
    [
      '/etc/passwd, now 100 MB of accounts',
      'yes root:x:0:0::/root:/bin/sh | head -c 100000000 > /etc/passwd',
    ],
  ])('%s: the control shows that it was the agent, reward 0', async (_, sabotage) => {
    expect(await judgeBeside(trial, { script: `${RIGHT}; ${sabotage}` })).toEqual({
      rep: 'reward 0',
      neighbour: 'reward 1',
    });
  });

  it.each([
    ['nothing that they need: /etc', 'mv /etc /etc.old; rm -rf /etc; rm -rf /etc/* 2>/dev/null; true'],
    ['every shell', 'rm -f /bin/bash /usr/bin/bash /bin/sh /usr/bin/sh /bin/dash'],
    ['the dynamic loader', 'rm -f /lib64/ld-linux-x86-64.so.2 "$(readlink -f /lib64/ld-linux-x86-64.so.2)"'],
    ['/etc/passwd, deleted', 'rm /etc/passwd /etc/group'],
    ['/logs, now a link', 'rm -rf /logs; ln -s /app /logs'],
    ['/logs, now a file', 'rm -rf /logs; echo > /logs'],
    ['/logs/verifier, now a link', 'rm -rf /logs/verifier; ln -s /app /logs/verifier'],
    ['/tests, now a file', 'rm -rf /tests; echo > /tests'],
    ['/tests, now a link', 'rm -rf /tests; ln -s /app /tests'],
    ['/opt, moved away', 'mv /opt /opt.old; mkdir -p /opt'],
  ])('%s: its tests still run', async (_, sabotage) => {
    expect(await judge(trial, { script: `${RIGHT}; ${sabotage}` })).toBe('reward 1');
  });
});

describe.concurrent('an agent that plants', () => {
  const REWARD = 'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt';
  it.each([
    ['a reward', REWARD],
    ['a reward behind a link', `mkdir /app/l; ln -s /app/l /logs/verifier; ${REWARD}`],
    [
      'tests',
      `mkdir -p /tests; printf '#!/bin/bash\\n${REWARD}\\n' > /tests/test.sh; chmod 755 /tests/test.sh`,
    ],
    [
      'the start of a second life, a thousand times',
      `mkdir -p d/tests; echo '${REWARD}; exit 100' > d/env; printf '#!/bin/bash\\n${REWARD}\\n' > d/tests/test.sh
       chmod 755 d/tests/test.sh; python3 -c "
import os, shutil
for n in range(1000): shutil.copytree('d', '/.evaluator-%032x' % n)"
       ${REWARD}`,
    ],
    [
      'a tools directory',
      `mv /opt /opt.old; mkdir -p /opt/evaluator
       printf '#!/bin/bash\\n${REWARD}\\nexit 100\\n' > /opt/evaluator/busybox; chmod 755 /opt/evaluator/busybox`,
    ],
  ])('%s, with a wrong answer: reward 0', async (_, plant) => {
    expect(await judge(trial, { script: `${plant}; echo wrong > /app/answer` })).toBe('reward 0');
  });

  it('a reward in the other file, beside a right answer: its own is the one that counts', async () => {
    const script = `${RIGHT}; mkdir -p /logs/verifier; echo '{"reward": 1}' > /logs/verifier/reward.json`;
    expect(await judge(trial, { script })).toBe('reward 1');
  });

  it('a reward, and leaves no shell to write another: reward 0', async () => {
    expect(await judge(trial, { script: `${REWARD}; rm -f /bin/bash /usr/bin/bash` })).toBe('reward 0');
  });

  it('a preloaded library and another home: the tests see neither', async () => {
    const test = `#!/bin/bash
if [ ! -e /etc/ld.so.preload ] && [ "$HOME" = /root ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;
    const script = `echo /app/evil.so > /etc/ld.so.preload; export HOME=/app
      sed -i s,:/root:,:/app:, /etc/passwd; printf 'HOME=/app\\nPATH=/app\\n' > /etc/environment`;
    expect(await judge(trial, { script, test })).toBe('reward 1');
  });

  it('words: no text decides whose fault it was', async () => {
    const script = `echo 'image pull failed: engine_broken'; echo '{"level":30,"event":"rep","reward":1}'
      printf 'RESULT={}\\n\\033]0;owned\\007\\033[2J'; echo Error response from daemon >&2; exit 125`;
    expect(await judge(trial, { script })).toBe('reward 0');
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
