import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentOutputOf, containersOf, judge, judged } from '../../support/judged.ts';
import { recordCalls } from '../../support/recording-engine.ts';
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

describe.concurrent('the sandbox of an agent', () => {
  it('holds our holder, the bridge and the agent, and nothing of the task but its instruction', async () => {
    const seen = await ask(
      'inside',
      `processes = {open(f"/proc/{p}/cmdline").read().split("\\0")[0] for p in os.listdir("/proc") if p.isdigit()}
print(json.dumps({"processes": sorted(processes), "task": os.listdir("/task")}))`,
    );
    expect(seen).toEqual({ processes: ['/opt/evaluator/busybox', 'python3'], task: ['instruction.md'] });
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
  it.each([
    ['makes its accounts a pipe', 'os.remove("/etc/passwd"); os.mkfifo("/etc/passwd")'],
    ['raises', 'raise RuntimeError("image pull failed")'],
    [
      'ends from within, with a child that holds its stdout',
      'subprocess.Popen(["setsid", "sleep", "1000"])\nsys.exit(0)',
    ],
  ])('%s: nothing comes of it', async (_, body) => {
    expect(await judge(trial, { script: '', brokered: agent(body) })).toBe('reward 1');
  });
});

describe('when its agent has ended', () => {
  it('nothing is done before what it left in the task is killed', async () => {
    const { engine, calls } = recordCalls(trial.context.engine);
    const body = 'await environment.exec("setsid sleep 1000 >/dev/null 2>&1 &")';
    const [rep] = await trial.run({ script: '', brokered: agent(body), engine });
    expect(judged(rep)).toBe('reward 1');
    const ended = calls.findLastIndex(({ name }) => name === 'execState');
    const [look, kill, ...then] = calls.slice(ended + 1);
    expect(look).toMatchObject({ name: 'inspect', of: rep?.container_id });
    expect(kill).toMatchObject({ name: 'kill', of: rep?.container_id });
    expect(then.slice(0, 2).map(({ name }) => name)).toEqual(['inspect', 'kill']);
  });
});

describe('afterwards', () => {
  it('no container is left', async () => {
    expect(await containersOf(trial)).toEqual([]);
  });
});
