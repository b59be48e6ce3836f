import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecSpec } from '../../../guest/engine/port.ts';
import { agentOutputOf, containersOf, judge, judged } from '../../support/judged.ts';
import { recordCalls } from '../../support/recording-engine.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';

let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

/** An agent that writes the right answer, then does `body`, and prints what `seen` holds. */
function agent(body: string): string {
  return `import asyncio, json, os, socket, subprocess, sys, time
from pathlib import Path
from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.agent.context import AgentContext

class Agent(BaseAgent):
    @staticmethod
    def name(): return "tried"
    def version(self): return None
    async def setup(self, environment): await environment.exec("echo right > /app/answer")
    async def run(self, instruction, environment, context):
        assert instruction == Path("/task/instruction.md").read_text()
        seen = {}
        async def refused(call):
            try: return str(await call)
            except RuntimeError as error: return f"{error.code}: {error}"
${body.replaceAll(/^/gm, '        ')}
        print(json.dumps(seen))
`;
}

/** What an agent saw; the rep must be right beside it. */
async function look(taskId: string, body: string): Promise<unknown> {
  // Their time is not what these tests are about.
  const limits = { wall_budget_ms: 170_000, storage_bytes: 1024 ** 3 };
  const [rep] = await trial.run({ script: '', brokered: agent(body), taskId, limits });
  const output = await agentOutputOf(trial, taskId);
  const errors = await trial.finished.find((done) => done.taskId === taskId)?.first.output();
  expect(judged(rep), errors?.stderr.head.toString()).toBe('reward 1');
  expect(output, errors?.stderr.head.toString()).not.toBe('');
  return JSON.parse(output);
}

const RESULT = `def shown(r): return [r.stdout, r.stderr, r.return_code]
`;

describe.concurrent('exec', () => {
  it('runs a command as Harbor would: shell, directory, variables, user, code', async () => {
    const seen = await look(
      'exec',
      `${RESULT}
seen["plain"] = shown(await environment.exec("echo out; echo err >&2; pwd; exit 7"))
seen["given"] = shown(await environment.exec("pwd; echo $A; id -un", cwd="/tmp", env={"A": "b c"}, user="nobody"))
seen["number"] = shown(await environment.exec("id -u", user=65534))
seen["bash"] = shown(await environment.exec("[[ -n $BASH_VERSION ]] && shopt -s nullglob"))
seen["bad cwd"] = (await environment.exec("true", cwd="/absent")).return_code
seen["bad user"] = (await environment.exec("true", user="absent")).return_code
seen["is"] = [await environment.is_dir("/app"), await environment.is_file("/app"), await environment.is_file("/app/answer")]
flood = await environment.exec("head -c 3000000 /dev/zero | tr '\\\\0' x; echo end")
seen["flood"] = [len(flood.stdout) < 300000, flood.stdout.endswith("end\\n"), "left out" in flood.stdout]
many = await asyncio.gather(*(environment.exec(f"sleep 0.2; echo {n}") for n in range(12)))
seen["at once"] = [r.stdout.strip() for r in many] == [str(n) for n in range(12)]`,
    );
    expect(seen).toEqual({
      plain: ['out\n/app\n', 'err\n', 7],
      given: ['/tmp\nb c\nnobody\n', '', 0],
      number: ['65534\n', '', 0],
      bash: ['', '', 0],
      'bad cwd': 126,
      'bad user': 126,
      is: [true, false, true],
      flood: [true, true, true],
      'at once': true,
    });
  });

  it('ends at its timeout with its whole process group, and at a cancel; what it left running goes on', async () => {
    const seen = await look(
      'timeout',
      `count = "n=0; for p in /proc/[0-9]*/cmdline; do grep -qa 'sleep.31[0-9]' $p 2>/dev/null && n=$((n+1)); done; echo $n"
start = time.monotonic()
seen["timeout"] = await refused(environment.exec("trap '' TERM; sleep 311 & sleep 312", timeout_sec=1))
try: await asyncio.wait_for(environment.exec("sleep 313 | sleep 314"), 1)
except TimeoutError: seen["cancelled"] = True
for _ in range(50):
    if (await environment.exec(count)).stdout.strip() == "0": break
seen["left of them"] = (await environment.exec(count)).stdout.strip()
await environment.exec("sleep 317 &")
await environment.exec("setsid sleep 318 >/dev/null 2>&1 &")
seen["left running"] = (await environment.exec(count)).stdout.strip()
seen["soon"] = time.monotonic() - start < 60`,
    );
    expect(seen).toEqual({
      timeout: 'timeout: Command timed out after 1 seconds',
      cancelled: true,
      'left of them': '0',
      'left running': '2',
      soon: true,
    });
  });

  it('is refused while the engine could be made to wait by it, and works again', async () => {
    const seen = await look(
      'passwd',
      `await environment.exec("cp /etc/passwd /srv/passwd; sleep 0.2; (sleep 3; rm /etc/passwd; cp /srv/passwd /etc/passwd) >/dev/null 2>&1 & rm /etc/passwd; mkfifo /etc/passwd")
seen["refused"] = (await refused(environment.exec("true")))[:8]
await asyncio.sleep(4)
seen["again"] = (await environment.exec("id -un")).stdout`,
    );
    expect(seen).toEqual({ refused: 'refused:', again: 'root\n' });
  });
});

describe.concurrent('transfers', () => {
  it('carry files and what is in directories, both ways, and leave modes and links alone', async () => {
    const seen = await look(
      'transfers',
      `here = Path("/root/here"); (here / "deep/er").mkdir(parents=True)
(here / "run.sh").write_text("#!/bin/sh\\necho ran\\n"); (here / "run.sh").chmod(0o700)
(here / "deep/er/f").write_text("f"); os.symlink("/etc/passwd", here / "link"); os.mkfifo(here / "pipe")
here.chmod(0o700)
await environment.upload_file(here / "run.sh", "/app/new/dir/named.sh")
await environment.upload_file(here / "run.sh", "/app")
await environment.upload_dir(here, "/tmp")
await environment.upload_dir(here, "/app/fresh/place")
await environment.upload_dir(here, "/app/fresh/place/")
r = await environment.exec("/app/new/dir/named.sh; /app/run.sh; stat -c %a /tmp /app/fresh/place; ls /tmp /app/fresh/place; cat /tmp/deep/er/f")
seen["up"] = r.stdout.split()
await environment.exec("ln -s /app /srv/way; mkdir -p /srv/d/e; echo g > /srv/d/e/g; echo h > /srv/d/h; ln -s h /srv/d/l")
await environment.upload_file(here / "run.sh", "/srv/way/through.sh")
await environment.download_file("/srv/way/through.sh", "/root/back/through.sh")
await environment.download_file("/srv/d/l", "/root/back/l")
await environment.download_dir("/srv/d", "/root/back/d")
back = Path("/root/back")
seen["down"] = sorted(str(p.relative_to(back)) for p in back.rglob("*") if p.is_file())
seen["same"] = [(back / "through.sh").read_text() == (here / "run.sh").read_text(), (back / "l").read_text()]
seen["absent"] = await refused(environment.download_file("/absent", "/root/x"))
seen["a directory as a file"] = await refused(environment.download_file("/srv/d", "/root/x"))
seen["a file as a directory"] = await refused(environment.upload_dir(here / "run.sh", "/app/x"))
seen["below a file"] = await refused(environment.upload_file(here / "run.sh", "/app/answer/x"))
await environment.exec("ln -s / /srv/root")
roots = ["/", "/.", "/..", "//", "/app/..", "/srv/root", "/srv/root/."]
seen["into the root"] = list({await refused(environment.upload_dir(here, root)) for root in roots})
seen["of the root"] = list({(await refused(environment.download_dir(root, "/root/r")))[:9] for root in roots})
Path("/dev/shm/x").write_text("x")
seen["of a tmpfs"] = (await refused(environment.upload_file("/dev/shm/x", "/app/x")))[:6]`,
    );
    expect(seen).toEqual({
      up: [
        'ran',
        'ran',
        '1777',
        '755',
        '/app/fresh/place:',
        'deep',
        'run.sh',
        '/tmp:',
        'deep',
        'run.sh',
        'f',
      ],
      down: ['d/e/g', 'd/h', 'l', 'through.sh'],
      same: [true, 'h\n'],
      absent: 'not_found: /absent is not there',
      'a directory as a file': 'not_found: /srv/d is no regular file',
      'a file as a directory': 'not_found: /root/here/run.sh is no directory below /',
      'below a file': expect.stringMatching(/^refused: /),
      'into the root': ['refused: name a directory below /'],
      'of the root': ['not_found'],
      'of a tmpfs': 'not_fo',
    });
  });

  it('change nothing of the tools, which other reps share, by whatever name', async () => {
    const before = await trial.context.engine.listOwned('io.cvm-evaluator.session');
    const seen = await look(
      'tools',
      `await environment.exec("ln -s /opt/evaluator /app/link; mkdir /app/swap")
Path("/root/busybox").write_text("mine"); os.chmod("/root/busybox", 0o755)
Path("/root/d/evaluator").mkdir(parents=True); Path("/root/d/evaluator/busybox").write_text("mine")
for target in ["/opt/evaluator/busybox", "/app/link/busybox", "/app/../opt/evaluator/new", "/proc/1/root/opt/evaluator/busybox"]:
    seen[target] = (await refused(environment.upload_file("/root/busybox", target))).split(":")[0]
seen["dir"] = (await refused(environment.upload_dir("/root/d", "/opt"))).split(":")[0]
swapping = asyncio.create_task(environment.exec("end=$((SECONDS+4)); while [ $SECONDS -lt $end ]; do rm -rf /app/swap; ln -s /opt/evaluator /app/swap; rm /app/swap; mkdir /app/swap; done"))
for _ in range(30): await refused(environment.upload_file("/root/busybox", "/app/swap/busybox"))
await swapping
seen["busybox"] = (await environment.exec("head -c 4 /opt/evaluator/busybox | tail -c 3; ls /opt/evaluator/new 2>&1 | grep -c such")).stdout`,
    );
    expect(before.length).toBeGreaterThan(0);
    expect(seen).toMatchObject({ busybox: 'ELF1\n' });
    for (const [name, outcome] of Object.entries(seen as object))
      if (name !== 'busybox') expect(['refused', 'failed'], name).toContain(outcome);
  });

  it('are bounded: a sparse terabyte, a hundred thousand files, a deep tree, a file that grows', async () => {
    const seen = await look(
      'bounded',
      `await environment.exec("truncate -s 600M /srv/a; mkdir /srv/many; cd /srv/many; python3 -c 'for n in range(25000): open(str(n), \\"w\\").close()'", timeout_sec=60)
await environment.exec("python3 -c 'import os\\nos.chdir(\\"/srv\\")\\nfor n in range(200):\\n  os.mkdir(\\"t\\"); os.chdir(\\"t\\")'")
seen["sparse"] = (await refused(environment.download_file("/srv/a", "/root/a")))[:5]
seen["many"] = (await refused(environment.download_dir("/srv/many", "/root/many")))[:5]
seen["deep"] = (await refused(environment.download_dir("/srv/t", "/root/t")))[:5]
grow = "(trap 'exit' TERM; while :; do echo xxxxxxxxxxxxxxxx; done > /srv/grows) >/dev/null 2>&1 & echo $!"
writer = (await environment.exec(grow)).stdout.strip()
seen["grows"] = (await refused(environment.download_file("/srv/grows", "/root/grows")))[:6] in ("None", "failed")
await environment.exec(f"kill {writer}")
seen["still"] = (await environment.exec("echo yes")).stdout`,
    );
    expect(seen).toEqual({ sparse: 'limit', many: 'limit', deep: 'limit', grows: true, still: 'yes\n' });
  });
});

const RAW = `def ask(lines, answers, timeout=60):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout); s.connect(os.environ["EVALUATOR_BROKER"])
        for line in lines: s.sendall(line + b"\\n")
        f = s.makefile("rb"); return [json.loads(f.readline()) for _ in range(answers)]
def call(n, **fields): return json.dumps({"id": n, "call": "exec", "command": "echo hi", **fields}).encode()
`;

describe.concurrent('whatever comes over the socket', () => {
  it('is answered or refused line by line, and harms no other', async () => {
    const seen = await look(
      'raw',
      `${RAW}
def codes(lines): return [a.get("error", {}).get("code", a.get("return_code")) for a in ask(lines, len(lines))]
def run():
    bad = [b"", b"{", b"[]", b"null", b"\\xff\\xfe", b'{"id":1,"call":"commit"}', call(2, container="other"), call(3, image="x"), b"x" * 2_000_000]
    seen["bad"] = codes(bad)
    seen["good"] = codes([call(1)])
    seen["twice"] = sorted(map(str, codes([call(1, command="sleep 1"), call(1)])))
    ids = [a["id"] for a in ask([call(n) for n in range(24)], 24)]
    seen["many"] = sorted(ids) == list(range(24))
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["EVALUATOR_BROKER"])
        for n in range(30): s.sendall(call(n, command="yes | head -c 200000") + b"\\n")
        seen["neighbour of one that does not read"] = codes([call(1)])
await asyncio.get_running_loop().run_in_executor(None, run)`,
    );
    expect(seen).toEqual({
      bad: Array.from({ length: 9 }, () => 'malformed'),
      good: [0],
      twice: ['0', 'malformed'],
      many: true,
      'neighbour of one that does not read': [0],
    });
  });

  it('ends with its bridge, which is the end of an agent that kills it, and no fault of ours', async () => {
    const body = `subprocess.run("kill -9 -1 2>/dev/null || true", shell=True)
os.kill(-1, 9)`;
    expect(await judge(trial, { script: '', brokered: agent(body) })).toBe('reward 1');
  });
});

describe('a flood over the socket', () => {
  it('costs the guest little: a line without end, and a flood of lines', async () => {
    const before = process.memoryUsage().rss;
    let peak = before;
    const sampler = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 50);
    const body = `${RAW}
def flood(piece):
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(3); s.connect(os.environ["EVALUATOR_BROKER"]); end = time.monotonic() + 3
            while time.monotonic() < end: s.sendall(piece)
    except OSError: pass
def run():
    flood(b"x" * 1_000_000)
    flood(b"{}\\n" * 300_000)
await asyncio.get_running_loop().run_in_executor(None, run)`;
    await look('flood', body);
    clearInterval(sampler);
    // Without an end to what is read it is half a gigabyte and more; how soon garbage goes is not ours to say.
    expect(peak - before).toBeLessThan(250 * 1024 * 1024);
  });
});

describe('the end of an agent', () => {
  it('is the end of its calls: what waits for its turn then is never asked of the engine', async () => {
    const { engine, calls } = recordCalls(trial.context.engine);
    // One write, in which the last call is behind four; the answer to the first says that all were read.
    const body = `def call(n, command): return json.dumps({"id": n, "call": "exec", "command": command}).encode() + b"\\n"
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.environ["EVALUATOR_BROKER"])
    s.sendall(call(1, "true") + b"".join(call(n, "sleep 1000") for n in range(2, 6)) + call(6, "echo late"))
    s.makefile("rb").readline()`;
    const [rep] = await trial.run({ script: '', brokered: agent(body), engine });
    expect(judged(rep)).toBe('reward 1');
    const commands = calls.flatMap(({ name, path: spec }) =>
      name === 'createExec' ? [(spec as ExecSpec).command.at(-1)] : [],
    );
    expect(commands).toContain('true');
    expect(commands).toContain('sleep 1000');
    expect(commands).not.toContain('echo late');
  });
});

describe('a live task', () => {
  it('keeps what a brokered agent started until its tests have ended', async () => {
    const test = `#!/bin/bash
mkdir -p /logs/verifier
if kill -0 "$(cat /app/pid)"; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;
    const body = 'await environment.exec("sleep 1000 > /dev/null 2>&1 & echo $! > /app/pid")';
    expect(await judge(trial, { script: '', brokered: agent(body), mode: 'live', test })).toBe('reward 1');
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
