import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseResult } from '../../guest/wire/result.ts';
import { AGENT_RUNTIME } from '../../scripts/images/agent-runtime.ts';
import { connectImageStore } from '../../scripts/tasks/image-store.ts';
import { ENGINE_SOCKET } from '../docker/fixtures.ts';
import { scratchFolder } from '../support/scratch.ts';
import { removeTaskImages } from '../support/task-images.ts';
import { AGENTS, bakeWordTally, expectSolved, runOn } from '../support/word-tally.ts';

const folder = scratchFolder();
const cache = join(folder, 'cache');

removeTaskImages(['word-tally']);
beforeAll(() => bakeWordTally(cache), 300_000);

const run = (agent: string, name: string, ...more: string[]) =>
  runOn(cache, agent, join(folder, name), ...more);

/** A package of one file. */
function packageOf(name: string, files: Readonly<Record<string, string>>): string {
  const path = join(folder, name);
  mkdirSync(path);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}

describe("an agent.py written against Harbor's interface, as it is", () => {
  it('solves a task, and plan and record name the image of its runtime', async () => {
    await expectSolved(cache, join(AGENTS, 'exec-loop'), join(folder, 'exec-loop'));
    const plan = JSON.parse(readFileSync(join(folder, 'exec-loop/plan.json'), 'utf8'));
    const image = await (await connectImageStore(ENGINE_SOCKET)).inspect(AGENT_RUNTIME);
    expect(plan.agent_runtime_image).toBe(image?.id);
    const { score_record } = parseResult(readFileSync(join(folder, 'exec-loop/result.json')));
    expect(score_record.agent_runtime_image).toBe(image?.id);
  });

  it('is given the variables that the plan allows, by name', async () => {
    const agent = packageOf('variables', {
      'agent.py': `import os
class Agent:
    def __init__(self, model_name): self.model = model_name
    async def run(self, instruction, environment, context):
        print(self.model, os.environ.get("LLM_MODEL"), os.environ.get("OTHER"))
`,
    });
    const { code, stderr } = await run(agent, 'variables-out', '--agent-env', 'LLM_MODEL');
    expect(code, stderr).toBe(0);
    const printed = readFileSync(join(folder, 'variables-out/reps/word-tally/0/agent.stdout'), 'utf8');
    expect(printed).toBe('a/model a/model None\n');
  });

  it('has its traceback in the logs of the run when it raises, and fails no rep by that', async () => {
    const agent = packageOf('raises', {
      'agent.py': 'class Agent:\n    def run(self, *_): raise KeyError("mine")\n',
    });
    const { code, stdout, stderr } = await run(agent, 'raises-out');
    expect([code, JSON.parse(stdout).score], stderr).toEqual([0, 0]);
    expect(readFileSync(join(folder, 'raises-out/reps/word-tally/0/agent.stderr'), 'utf8')).toContain(
      "KeyError: 'mine'",
    );
  });
});

describe('a brokered agent of another language', () => {
  it('speaks to the broker itself', async () => {
    const program = `import { connect } from 'node:net';
import { createInterface } from 'node:readline';
const broker = connect(process.env.EVALUATOR_BROKER);
const command = ${JSON.stringify(`python3 -c 'import re, collections as c
w = c.Counter(re.findall(r"[a-z]+(?:\\x27[a-z]+)*", open("letter.txt").read().lower()))
for n, x in sorted((-n, x) for x, n in w.items())[:10]: print(-n, x)' > tally.txt`)};
broker.write(JSON.stringify({ id: 1, call: 'exec', command }) + '\\n');
for await (const line of createInterface({ input: broker })) { console.log(line); break; }
broker.destroy();
`;
    const agent = packageOf('node', {
      'agent.yaml': 'schema_version: 1\nkind: brokered\ncommand: ["node", "/agent/main.mjs"]\nenv: []\n',
      'main.mjs': program,
    });
    const { code, stdout, stderr } = await run(agent, 'node-out');
    expect([code, JSON.parse(stdout).score], stderr).toEqual([0, 1]);
  });
});

describe('before anything is started', () => {
  it('an agent.py without the class is refused, with what to do', async () => {
    const agent = packageOf('nameless', { 'agent.py': 'class Mine:\n    pass\n' });
    const { code, stderr } = await run(agent, 'nameless-out');
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/class Agent.*add an agent\.yaml.*\[agent_manifest_invalid\]/s),
    ]);
  });
});
