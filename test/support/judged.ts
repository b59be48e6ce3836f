import { decodeF64be } from '../../guest/wire/f64.ts';
import type { RepRecord } from '../../guest/wire/score-record.ts';
import type { ScriptOptions, TrialHarness } from './trial.ts';

/** The published reward of a rep, or null when it failed. */
export function rewardOf(rep: RepRecord | undefined): number | null {
  return rep?.value && 'reward_f64be' in rep.value ? decodeF64be(rep.value.reward_f64be) : null;
}

/** A rep's outcome in a word: `reward 1`, `reward 0` or the failure's code. */
export function judged(rep: RepRecord | undefined): string {
  return rep?.failure ?? `reward ${rewardOf(rep)}`;
}

/** Runs one rep and gives its outcome. */
export async function judge(trial: TrialHarness, options: ScriptOptions): Promise<string> {
  const [rep] = await trial.run(options);
  return judged(rep);
}

/** Runs one rep beside an honest one that lasts a while, and gives both outcomes. */
export async function judgeBeside(
  trial: TrialHarness,
  options: ScriptOptions,
): Promise<{ rep: string; neighbour: string }> {
  const honest = 'sleep 2; echo right > /app/answer';
  const [rep, neighbour] = await Promise.all([
    judge(trial, options),
    judge(trial, { script: honest, taskId: 'neighbour' }),
  ]);
  return { rep, neighbour };
}
