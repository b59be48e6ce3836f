import { afterAll, beforeAll, expect, it } from 'vitest';
import { judge } from '../../support/judged.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';

let trial: TrialHarness;

beforeAll(async () => {
  // Debian without an /app, which is the WORKDIR of every task here.
  trial = await startTrial({ image: 'python:3.11-slim-bookworm' });
});
afterAll(() => trial.close());

it('a WORKDIR that the image names and does not hold is made, and charged to nobody', async () => {
  expect(await judge(trial, { script: 'pwd; echo right > answer' })).toBe('reward 1');
});
