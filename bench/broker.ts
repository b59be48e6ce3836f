import type { Engine } from '../guest/engine/port.ts';
import { hookedEngine } from '../test/support/hooked-engine.ts';
import { agentOutputOf } from '../test/support/judged.ts';
import { startTrial } from '../test/support/trial.ts';
import { percentile, spread } from './statistics.ts';

/**
 * What the broker adds to a command: an agent's `environment.exec`, from its call to its result, above the same
 * command as an exec of the engine in the same container, right before it.
 */
const CALLS = 200;
const AGENT = `import json, time

class Agent:
    async def run(self, instruction, environment, context):
        took = []
        for number in range(${CALLS}):
            start = time.perf_counter()
            await environment.exec("echo hello")
            took.append((time.perf_counter() - start) * 1000)
        print(json.dumps(took))
`;

async function bareExec(engine: Engine, containerId: string): Promise<number> {
  const start = performance.now();
  const command = ['bash', '-c', 'echo hello'];
  const execId = await engine.createExec(containerId, { command, env: [], workingDir: '/app', user: '0' });
  await (await engine.startExec(execId)).output;
  // The engine learns of the end a little after the stream's.
  while ((await engine.execState(execId)).running);
  return performance.now() - start;
}

const trial = await startTrial();
try {
  const { engine } = trial.context;
  const bare: number[] = [];
  let measuring: Promise<number> | null = null;
  /** The first calls of a command wait for the bare one, which is then taken off the agent's time. */
  const before = async (name: keyof Engine, args: readonly unknown[]) => {
    const [id, what] = args as [string, unknown];
    const command = (what as { command?: string[] } | undefined)?.command;
    const begins = what === '/etc' || (name === 'createExec' && command?.includes('echo hello'));
    if (!begins || !(name === 'createExec' || name === 'statPath')) return;
    measuring ??= bareExec(engine, id);
    await measuring;
  };
  const after = async (name: keyof Engine) => {
    if (name !== 'pipeExec' || measuring === null) return;
    bare.push(await measuring);
    measuring = null;
  };
  await trial.run({
    script: '',
    brokered: AGENT,
    taskId: 'bench',
    limits: { wall_budget_ms: 600_000 },
    engine: hookedEngine(engine, { before, after }),
  });
  const both: number[] = JSON.parse(await agentOutputOf(trial, 'bench'));
  const brokered = both.map((ms, i) => ms - (bare[i] ?? Number.NaN));
  const added = brokered.map((ms, i) => ms - (bare[i] ?? Number.NaN));
  console.log(
    `\nexec of an agent, ${CALLS} calls, p50 / p95 / max ms: bare ${spread(bare)}, brokered ${spread(brokered)}; ` +
      `added p50 ${percentile(added, 0.5).toFixed(1)}`,
  );
} finally {
  await trial.close();
}
