import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// A shared CI machine may starve a test for seconds; what fails twice there has failed.
const shared = {
  retry: process.env.CI === 'true' ? 1 : 0,
  testTimeout: 60_000,
  hookTimeout: 180_000,
  // Processes that tests start spend half their time reading the same modules.
  env: { NODE_COMPILE_CACHE: new URL('node_modules/.cache/node', import.meta.url).pathname },
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/docker/**', 'test/e2e/**'],
        },
      },
      {
        test: {
          ...shared,
          name: 'engine',
          include: ['test/docker/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          // One engine, two cores: files that start containers take turns.
          fileParallelism: false,
          testTimeout: 180_000,
        },
      },
    ],
  },
});
