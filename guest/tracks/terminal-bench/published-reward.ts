import type { Policy } from '../../wire/plan.ts';

const STEPS = 64;

/**
 * The part of a reward that leaves the VM: under `vote` 1 only if the reward is 1, else 0; under `mean`
 * rounded down to a multiple of 1/64. A finer reward could carry the tests out (spec/03).
 */
export function publishedReward(reward: number, policy: Policy): number {
  return policy === 'vote' ? Number(reward === 1) : Math.floor(reward * STEPS) / STEPS;
}
