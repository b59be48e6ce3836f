import { join } from 'node:path';
import { expect } from 'vitest';
import { type Ended, evaluator } from './evaluator.ts';

const TASKS = join(import.meta.dirname, '../../task-cache');
/** Agents that solve the task word-tally, each in a folder. */
export const AGENTS = join(import.meta.dirname, '../fixtures/agents');

/** A cache of the task word-tally alone. */
export async function bakeWordTally(cache: string): Promise<void> {
  const baked = await evaluator(['bake', '--from', TASKS, '--only', 'word-tally', '--out', cache]);
  expect(baked.code, baked.stderr).toBe(0);
}

/** One rep of an agent on that cache, its files in `out`. */
export function runOn(cache: string, agent: string, out: string, ...more: string[]): Promise<Ended> {
  const options = ['--cache', cache, '--reps', '1', '--json', '--agent', agent, '--out', out, ...more];
  return evaluator(['run', ...options], { LLM_MODEL: 'a/model', OTHER: 'not asked for' });
}

/** The agent ends the run with an accepted score of 1. */
export async function expectSolved(cache: string, agent: string, out: string): Promise<void> {
  const { code, stdout, stderr } = await runOn(cache, agent, out);
  expect([code, JSON.parse(stdout).score], stderr).toEqual([0, 1]);
}
