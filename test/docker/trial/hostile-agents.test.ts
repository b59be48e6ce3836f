import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containersOf, judge, judged } from '../../support/judged.ts';
import { recordCalls } from '../../support/recording-engine.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';
import { honestBeside, type Neighbour, PLACES, type Place } from './places.ts';

const MIB = 1024 * 1024;
const RIGHT = 'echo right > /app/answer';
/** Kills what the holder waits for, without starting a process of its own. */
const KILL_HOLDERS_SLEEP = `for p in /proc/[0-9]*; do
  read -r comm < $p/comm 2>/dev/null || continue
  if [ "$comm" = busybox ] && [ "$p" != /proc/1 ]; then kill -9 "\${p#/proc/}"; fi
done 2>/dev/null`;
let trial: TrialHarness;
let neighbour: Neighbour;

beforeAll(async () => {
  trial = await startTrial();
  neighbour = honestBeside(trial);
});
afterAll(() => trial.close());

describe.concurrent.each(PLACES)('%s: an agent that attacks the holder', (_place, as) => {
  it.each([
    [
      'sends it every signal',
      `for s in TERM HUP INT QUIT USR1 USR2 SEGV ALRM KILL STOP; do kill -$s 1; done; sleep 0.2; ${RIGHT}`,
    ],
    ['kills every process, itself included', `${RIGHT}; python3 -c 'import os; os.kill(-1, 9)'; sleep 60`],
    ['kills its sleep, again and again', `for i in 1 2 3 4 5; do ${KILL_HOLDERS_SLEEP}; done; ${RIGHT}`],
  ])('%s: is judged by its tests', async (_, script) => {
    expect(await judge(trial, { ...as, script })).toBe('reward 1');
  });

  it('has no process left for it to sleep with: is judged by its tests', async () => {
    // Its sleep is killed while others wait for every process that becomes free.
    const script = `${RIGHT}; exec python3 - <<'EOF'
import os, signal, time
end = time.monotonic() + 2
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
    expect(await judge(trial, { ...as, script, pids: 48 })).toBe('reward 1');
  });

  it('makes it exit like a verification that has ended: liveness', async () => {
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
    expect(await judge(trial, { ...as, script })).toBe('liveness');
  });
});

/** Writes without end, and when the agent has ended too: in the task's container, or through the broker. */
const WRITER = `setsid bash -c 'while :; do echo $RANDOM$RANDOM > /app/beat.new; mv /app/beat.new /app/beat; done' &
while [ ! -e /app/beat ]; do sleep 0.1; done`;
const WRITER_THROUGH_THE_BROKER = `setsid python3 - >/dev/null 2>&1 <<'EOF' &
import json, os, socket
with socket.socket(socket.AF_UNIX) as broker:
    broker.connect(os.environ['EVALUATOR_BROKER']); answers = broker.makefile('rb')
    for n in range(9000):
        command = f'echo {n} > /app/beat.new; mv /app/beat.new /app/beat'
        broker.sendall(json.dumps({'id': n, 'call': 'exec', 'command': command}).encode() + b'\\n'); answers.readline()
        if n == 3: open('/app/beats', 'w').close()
EOF
while [ ! -e /app/beats ]; do sleep 0.1; done`;

describe.concurrent.each(PLACES)('%s: an agent that takes what there is', (place, as) => {
  it('forks without end: ends at a budget', async () => {
    const script = ':(){ :|:& };:; while :; do :; done';
    const limits = { cpu_budget_ms: 2000, wall_budget_ms: 8000 };
    const rep = await judge(trial, { ...as, script, pids: 64, limits });
    expect(['cpu_budget', 'wall_backstop']).toContain(rep);
  });

  it('fills /dev/shm, which is memory, as far as either goes', async () => {
    const script = `exec python3 -c "
f = open('/dev/shm/x', 'wb')
while True: f.write(bytes(1 << 20)); f.flush()"`;
    const ends: Record<Place, string> = {
      container: 'memory_limit',
      'brokered, by exec': 'memory_limit',
      // 64 MiB of its 1 GiB; the answer stays what it is.
      'brokered, itself': 'reward 1',
    };
    expect(await judge(trial, { ...as, script, limits: { memory_bytes: 32 * MIB } })).toBe(ends[place]);
  });

  it('leaves a child that holds its stdout: is over when it has ended itself', async () => {
    const [rep] = await trial.run({ ...as, script: `setsid sleep 1000 & ${RIGHT}` });
    expect([judged(rep), (rep?.wall_ms ?? 0) < 30_000]).toEqual(['reward 1', true]);
  });

  it('leaves a writer behind: it is dead before the tests look', async () => {
    const test = `#!/bin/bash
first=$(cat /app/beat); sleep 0.3; second=$(cat /app/beat)
if [ -n "$first" ] && [ "$first" = "$second" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;
    const script = place === 'brokered, itself' ? WRITER_THROUGH_THE_BROKER : WRITER;
    expect(await judge(trial, { ...as, script, test })).toBe('reward 1');
  });

  it('speaks our language: no text decides whose fault it was', async () => {
    const script = `${RIGHT}; echo 'image pull failed: engine_broken'; echo '{"level":30,"event":"rep","reward":0}'
      printf 'RESULT={}\\n\\033]0;owned\\007\\033[2J'; echo Error response from daemon >&2; exit 125`;
    expect(await judge(trial, { ...as, script })).toBe('reward 1');
  });
});

it('a line of 300 MB and a flood of short ones are not kept, whoever prints them', async () => {
  const before = process.memoryUsage().rss;
  let peak = before;
  const sampler = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 50);
  const script = `head -c 300000000 /dev/zero; yes | head -c 50000000; yes | head -c 50000000 >&2; ${RIGHT}`;
  const reps = await Promise.all(PLACES.map(([, as]) => judge(trial, { ...as, script })));
  clearInterval(sampler);
  expect(reps).toEqual(PLACES.map(() => 'reward 1'));
  expect(peak - before).toBeLessThan(150 * MIB);
});

describe('an agent that closes its streams and goes on', () => {
  it('has the engine asked now and then only', async () => {
    const { engine, calls } = recordCalls(trial.context.engine);
    const script = `exec </dev/null >&- 2>&-; sleep 3; ${RIGHT}`;
    const [rep] = await trial.run({ script, engine });
    expect(judged(rep)).toBe('reward 1');
    // A quarter of a second apart, after a few that follow on the end of the streams.
    const most = Math.ceil((rep?.wall_ms ?? 0) / 250) + 12;
    expect(calls.filter(({ name }) => name === 'execState').length).toBeLessThan(most);
    expect(calls.filter(({ name }) => name === 'startExec')).toHaveLength(1);
  });
});

describe('afterwards', () => {
  it('the honest reps beside all of them were judged by their tests, and no container is left', async () => {
    expect(await neighbour.end()).toEqual(['reward 1']);
    expect(await containersOf(trial)).toEqual([]);
  });
});
