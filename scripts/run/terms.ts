import { readFileSync } from 'node:fs';
import { isRound } from '../../guest/consensus/plan-mechanism.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { readInferenceOffer } from '../../guest/stages/model-access.ts';
import { parseMechanism, trackRules } from '../../guest/wire/mechanism.ts';
import type { RunOptions } from './options.ts';

/** Where the mechanism leaves it to the plan. */
const DEFAULT_REPS = 3;

/**
 * How often each task is run: what was asked for, else the track's number.
 * @throws track_unknown; plan_contradicts_mechanism when the track has another.
 */
export function repsOf({ track, reps }: Pick<RunOptions, 'track' | 'reps'>, mechanism: Buffer): number {
  const { r } = trackRules(parseMechanism(mechanism).mechanism, track);
  if (r === 'plan') return reps ?? DEFAULT_REPS;
  if (reps === null || reps === r) return r;
  throw new EvaluatorError(
    'plan_contradicts_mechanism',
    `--reps ${reps}: the mechanism has track ${track} run ${r} times; leave the option out`,
  );
}

/**
 * The tasks of a run are as many as a round of their track has: all of it where it is ranked, else no more.
 * @throws track_unknown; plan_contradicts_mechanism when they are not.
 */
export function verifyRound(
  { track, weight }: Pick<RunOptions, 'track' | 'weight'>,
  mechanism: Buffer,
  tasks: number,
): void {
  const rules = trackRules(parseMechanism(mechanism).mechanism, track);
  if (isRound(tasks, weight === 'ranked', rules)) return;
  const round = `a round of track ${track} has ${rules.tasks_per_round}`;
  throw new EvaluatorError(
    'plan_contradicts_mechanism',
    `run: ${tasks} tasks: by the image's mechanism ${round}, of which only a run that is not --ranked may try a part`,
  );
}

/** A variable that is not set would be missing without a word: an agent would ask no model. @throws usage. */
export function verifyVariables({ agentEnv }: Pick<RunOptions, 'agentEnv'>, env: NodeJS.ProcessEnv): void {
  const unset = agentEnv.find((name) => env[name] === undefined);
  if (unset === undefined) return;
  throw new EvaluatorError(
    'usage',
    `run: --agent-env ${unset}: not set in this environment; export it, or leave it out`,
  );
}

/**
 * Refuses what the mechanism at hand will not have.
 * @throws track_unknown, plan_contradicts_mechanism, inference_key_missing.
 */
export function verifyTerms(
  options: Pick<RunOptions, 'track' | 'reps'>,
  mechanismFile: string,
  env: NodeJS.ProcessEnv,
): void {
  const bytes = readFileSync(mechanismFile);
  repsOf(options, bytes);
  const { mechanism } = parseMechanism(bytes);
  const agentEnv = Object.fromEntries(
    Object.entries(env).flatMap(([k, v]) => (v === undefined ? [] : [[k, v]])),
  );
  if (mechanism.inference !== null)
    readInferenceOffer({ tasks: [{ network: 'inference' }] }, mechanism, { agentEnv });
}
