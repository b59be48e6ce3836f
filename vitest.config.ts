import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// A shared CI machine may starve a test for seconds; what fails twice there has failed.
const shared = {
  retry: process.env.CI === 'true' ? 1 : 0,
  testTimeout: 60_000,
  hookTimeout: 180_000,
  env: {
    // Processes that tests start spend half their time reading the same modules.
    NODE_COMPILE_CACHE: new URL('node_modules/.cache/node', import.meta.url).pathname,
    // A short name: sockets lie in it, and the kernel takes 107 bytes of a socket's path.
    TMPDIR: join(tmpdir(), `cvm-tests-${process.pid}`),
  },
  globalSetup: './test/support/leftovers.ts',
};

const SLOW = 'test/**/*.slow.test.ts';
// One engine: of the files that start containers two at a time, since half of the time they wait for it.
const onEngine = { ...shared, maxWorkers: 2, testTimeout: 180_000 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          maxWorkers: 2,
          include: ['test/**/*.test.ts'],
          exclude: ['test/docker/**', 'test/e2e/**', SLOW],
        },
      },
      {
        test: {
          ...onEngine,
          name: 'engine',
          include: ['test/docker/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          exclude: [SLOW],
        },
      },
      // Not of every run: `scripts/test --all`. After the others, since they build and remove the same images.
      {
        test: {
          ...onEngine,
          name: 'slow',
          include: [SLOW],
          testTimeout: 3_600_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
