import { LABEL } from '../../guest/trial/labels.ts';
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

/** What the tests of a task's first rep printed, as text. */
export function testOutputOf(trial: TrialHarness, taskId: string): string {
  return trial.finished.find((done) => done.taskId === taskId)?.testOutput?.toString('utf8') ?? '';
}

/** What a task's first agent printed to stdout (its beginning), as text. */
export async function agentOutputOf(trial: TrialHarness, taskId: string): Promise<string> {
  const output = await trial.finished.find((done) => done.taskId === taskId)?.first.output();
  return output?.stdout.head.toString('utf8') ?? '';
}

/** The trial containers of this session that are still there. */
export async function containersOf(trial: TrialHarness): Promise<string[]> {
  const owned = await trial.context.engine.listOwned(LABEL.session);
  return owned
    .filter(({ kind, labels }) => kind === 'container' && labels[LABEL.session] === trial.session.id)
    .map(({ labels }) => `${labels[LABEL.role]} ${labels[LABEL.rep]}`);
}
