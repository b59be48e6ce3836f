import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { encodeCanonical } from '../../../guest/wire/canonical.ts';
import { planKeys, signedPlan } from '../../support/plan.ts';

it('a guest whose log is full says nothing more and ends with 5', async () => {
  const keys = planKeys();
  const { publicKey, challengeId } = keys.planRoot;
  const guest = join(import.meta.dirname, '../../../guest/eval.ts');
  const child = spawn(process.execPath, [guest, '--plan-root', publicKey, '--challenge-id', challengeId], {
    stdio: ['ignore', 'pipe', openSync('/dev/full', 'w')],
    env: {
      PATH: process.env.PATH,
      EVAL_PLAN: encodeCanonical(signedPlan(keys) as never).toString('base64url'),
      EVAL_RUN_TOKEN: 'token',
    },
  });
  let stdout = '';
  child.stdout?.on('data', (chunk) => {
    stdout += chunk;
  });
  const [code] = await once(child, 'close');
  expect([code, stdout]).toEqual([5, '']);
});
