import { defineConfig } from 'vitest/config';

const shared = { testTimeout: 60_000, hookTimeout: 180_000 };

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
