import { join } from 'node:path';
import { expect, it } from 'vitest';
import { evaluator } from '../../support/evaluator.ts';

const TASKS = join(import.meta.dirname, '../../../task-cache');

it('toolchain --for prints digest, size and packages, of tasks without a test.sh too', async () => {
  const { code, stdout, stderr } = await evaluator(['toolchain', '--for', TASKS, '--json']);
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    size_bytes: expect.any(Number),
    python: expect.arrayContaining(['pytest==8.4.1']),
  });
});
