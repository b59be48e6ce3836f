import { afterAll, beforeAll, expect, it } from 'vitest';
import { networkName } from '../../../guest/trial/sandbox.ts';
import { judge, testOutputOf } from '../../support/judged.ts';
import { startTrial, type TrialHarness } from '../../support/trial.ts';

let trial: TrialHarness;

beforeAll(async () => {
  trial = await startTrial();
});
afterAll(() => trial.close());

it('a live task whose network is closed has a name refused at once, not after every timeout', async () => {
  const { context, session } = trial;
  await context.engine.createNetwork(networkName(context), { 'io.cvm-evaluator.session': session.id });
  const script = 'cat /etc/resolv.conf > /app/before';
  const test = `#!/bin/bash
cat /app/before
echo 'then'
cat /etc/resolv.conf
echo 1 > /logs/verifier/reward.txt
`;
  const task = { taskId: 'names', script, test, mode: 'live', network: 'open' } as const;
  expect(await judge(trial, task)).toBe('reward 1');
  const [before, after] = testOutputOf(trial, 'names').split('then\n');
  expect(before).toContain('nameserver 127.0.0.11');
  // Nothing listens there: the kernel refuses.
  expect(after).toBe('nameserver 127.0.0.1\n');
});
