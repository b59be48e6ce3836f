import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentOutputOf, containersOf, judgeBeside, judged } from '../../support/judged.ts';
import { type ScriptOptions, startTrial, type TrialHarness } from '../../support/trial.ts';

const SECRET = 'sk-not-to-be-seen';
let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

/** An agent that has the right answer written, and then does `body` in its own sandbox. */
function agent(body: string): string {
  return `import asyncio, json, os, signal, socket, subprocess, sys, time

class Agent:
    async def run(self, instruction, environment, context):
        await environment.exec("echo right > /app/answer")
${body.replaceAll(/^/gm, '        ')}
`;
}

async function ask(taskId: string, body: string, options: Partial<ScriptOptions> = {}): Promise<unknown> {
  const [rep] = await trial.run({ script: '', brokered: agent(body), taskId, ...options });
  expect(judged(rep)).toBe('reward 1');
  return JSON.parse(await agentOutputOf(trial, taskId));
}

describe('the canary in the sandbox of an agent', () => {
  let stranger: Server;
  let port = 0;

  beforeAll(async () => {
    // Stands for the guest agent's port and every other service of the VM.
    stranger = createServer((socket) => socket.end('stand-in\n')).listen(0, '0.0.0.0');
    await once(stranger, 'listening');
    const address = stranger.address();
    port = typeof address === 'object' && address ? address.port : 0;
  });
  afterAll(() => {
    stranger.close();
  });

  const canary = () => `
def unix(path):
    try:
        with socket.socket(socket.AF_UNIX) as s: s.connect(path)
    except OSError as error: return type(error).__name__
    return "reached"
def tcp(host, port):
    try: socket.create_connection((host, port), 5).close()
    except OSError as error: return type(error).__name__
    return "reached"
found = {path: unix(path) for path in ["/var/run/docker.sock", "/run/docker.sock", "/var/run/dstack.sock",
  "/var/run/tappd.sock", "/run/containerd/containerd.sock", "\\0/containerd-shim", "/opt/evaluator/broker.sock"]}
found["gateway"] = tcp("172.17.0.1", ${port}); found["8090"] = tcp("172.17.0.1", 8090); found["name"] = tcp("example.com", 80)
sockets = [os.path.join(folder, name) for top in ("/run", "/tmp", "/var", "/opt", "/agent-runtime", "/dev") for folder, _, names in os.walk(top)
  for name in names if os.path.exists(os.path.join(folder, name)) and os.stat(os.path.join(folder, name)).st_mode & 0o170000 == 0o140000]
status = dict(line.rstrip().split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
processes = [open(f"/proc/{p}/cmdline").read().split("\\0")[0] for p in os.listdir("/proc") if p.isdigit()]
print(json.dumps({"reached": [name for name, what in found.items() if what == "reached"], "sockets": sockets,
  "caps": status["CapBnd"], "nnp": status["NoNewPrivs"], "net": os.listdir("/sys/class/net"), "processes": sorted(set(processes)),
  "mounts": [line.split()[1] for line in open("/proc/mounts") if line.split()[2] in ("ext4", "xfs", "btrfs")]}))`;

  it('reaches neither engine nor quote, no other broker, no port and no network', async () => {
    // Beside another rep, whose broker is as near as it ever is.
    const [seen] = await Promise.all([
      ask('canary', canary()),
      ask('other', 'await asyncio.sleep(2)\nprint("{}")'),
    ]);
    expect(seen).toEqual({
      reached: [],
      sockets: ['/run/evaluator/broker.sock'],
      caps: '00000000000405fb',
      nnp: '1',
      net: ['lo'],
      processes: ['/opt/evaluator/busybox', 'python3'],
      mounts: ['/opt/evaluator', '/etc/resolv.conf', '/etc/hostname', '/etc/hosts'],
    });
  });

  it('has the variables of the plan, which nothing else of the rep has', async () => {
    const body = `
grep = "grep -sl ${SECRET} /proc/[0-9]*/environ /etc/environment | wc -l; env | grep -c ${SECRET}"
inside = (await environment.exec(grep)).stdout.split()
holder = open("/proc/1/environ").read()
print(json.dumps({"mine": os.environ["KEY"] == "${SECRET}", "task": inside, "holder": "${SECRET}" in holder}))`;
    // The command that looks has the word in its own command line, not in its environment.
    const seen = await ask('variables', body, { agentEnv: [`KEY=${SECRET}`] });
    expect(seen).toEqual({ mine: true, task: ['0', '0'], holder: false });
  });
});

describe.concurrent('in its own sandbox, an agent that', () => {
  const busy = 'while True: pass';
  it.each<[string, string, Partial<ScriptOptions>, string | string[]]>([
    [
      'forks without end',
      'subprocess.Popen(["bash", "-c", ":(){ :|:& };:"]); time.sleep(60)',
      { pids: 64, limits: { cpu_budget_ms: 2000, wall_budget_ms: 15_000 } },
      ['cpu_budget', 'wall_backstop'],
    ],
    ['burns CPU', busy, { limits: { cpu_budget_ms: 1000 } }, 'cpu_budget'],
    [
      'burns CPU in children that exit, a second over',
      'for _ in range(40): subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.1: pass"])',
      { limits: { cpu_budget_ms: 1000 } },
      'cpu_budget',
    ],
    [
      'burns half there and half in the task',
      `await environment.exec("n=0; while [ $n -lt 150000 ]; do n=$((n+1)); done")
while time.process_time() < 0.8: pass`,
      { limits: { cpu_budget_ms: 1000 } },
      'cpu_budget',
    ],
    ['sleeps through the wall', 'time.sleep(600)', { limits: { wall_budget_ms: 5000 } }, 'wall_backstop'],
    [
      'waits for a command that never ends',
      'await environment.exec("trap \\"\\" TERM; sleep 600")',
      { limits: { wall_budget_ms: 5000 } },
      'wall_backstop',
    ],
    [
      'takes more memory than it has',
      'os.execvp("python3", ["python3", "-c", "x = [bytearray(64 << 20) for _ in range(40)]"])',
      {},
      'memory_limit',
    ],
    [
      'has a child killed for memory and goes on',
      'subprocess.run([sys.executable, "-c", "x = [bytearray(64 << 20) for _ in range(40)]"])',
      {},
      'reward 1',
    ],
    [
      'writes more than it may',
      'for n in range(3):\n    with open(f"/root/{n}", "wb") as f: f.truncate(1000 << 20)',
      { limits: { wall_budget_ms: 60_000 } },
      'disk_limit',
    ],
    ['exits with 137', 'os._exit(137)', {}, 'reward 1'],
    ['raises', 'raise RuntimeError("image pull failed")', {}, 'reward 1'],
    ['kills every process', 'os.kill(-1, 9)', {}, 'reward 1'],
    [
      'leaves a child that holds its stdout',
      'subprocess.Popen(["setsid", "sleep", "1000"])\nsys.exit(0)',
      {},
      'reward 1',
    ],
    ['floods its stdout', 'for _ in range(300): os.write(1, b"x" * 1_000_000)', {}, 'reward 1'],
    [
      'speaks our language',
      'print("RESULT={}\\\\n", json.dumps({"event": "rep", "reward": 1}), "\\\\033]0;owned\\\\007")\nsys.exit(125)',
      {},
      'reward 1',
    ],
    [
      'makes its accounts a pipe',
      'os.remove("/etc/passwd"); os.mkfifo("/etc/passwd"); await environment.exec("echo more")',
      {},
      'reward 1',
    ],
  ])('%s ends as what is seen of it says', async (_, body, options, expected) => {
    const { rep, neighbour } = await judgeBeside(trial, { script: '', brokered: agent(body), ...options });
    expect([expected].flat()).toContain(rep);
    expect(neighbour).toBe('reward 1');
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
