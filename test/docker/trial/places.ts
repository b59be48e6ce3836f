import { expect } from 'vitest';
import { judge, judged } from '../../support/judged.ts';
import { KINDS, type ScriptOptions, type TrialHarness } from '../../support/trial.ts';

/** A brokered agent that has the task answered right, and then becomes /agent/agent.sh in its own sandbox. */
export const ITSELF = `import os

class Agent:
    async def run(self, instruction, environment, context):
        await environment.exec("echo right > /app/answer")
        os.makedirs("/app", exist_ok=True)
        os.chdir("/app")
        os.execvp("bash", ["bash", "/agent/agent.sh"])
`;

export type Place = 'container' | 'brokered, by exec' | 'brokered, itself';

/**
 * Where the script of an agent does what it does: as the command of a container agent; in the task's container, by
 * an exec of a brokered agent; in a brokered agent's own sandbox.
 */
export const PLACES: readonly (readonly [place: Place, options: Pick<ScriptOptions, 'brokered'>])[] = [
  ['container', KINDS[0]?.[1] ?? {}],
  ['brokered, by exec', KINDS[1]?.[1] ?? {}],
  ['brokered, itself', { brokered: ITSELF }],
];

export interface Neighbour {
  /** Waits for the rep that is under way. @returns how each was judged, no outcome twice. */
  end(): Promise<string[]>;
}

/** Honest reps, one after another, for as long as others attack: each must be judged by its tests. */
export function honestBeside(trial: TrialHarness): Neighbour {
  const outcomes = new Set<string>();
  let over = false;
  const reps = (async () => {
    do outcomes.add(await judge(trial, { script: 'sleep 1; echo right > /app/answer', taskId: 'neighbour' }));
    while (!over);
  })();
  // Told by `end`.
  reps.catch(() => undefined);
  return {
    end: async () => {
      over = true;
      await reps;
      return [...outcomes];
    },
  };
}

/** The JSON that a Python program prints at a place; its rep must end well. */
export async function answerOf(
  trial: TrialHarness,
  taskId: string,
  as: Partial<ScriptOptions>,
  python: string,
): Promise<Record<string, unknown>> {
  const script = `python3 - <<'EOF'\n${python}\nEOF\necho right > /app/answer`;
  const [rep] = await trial.run({ ...as, script, taskId });
  const output = await trial.finished.find((done) => done.taskId === taskId)?.first.output();
  expect(judged(rep), output?.stderr.head.toString()).toBe('reward 1');
  return JSON.parse(output?.stdout.head.toString() ?? '');
}
