import { defineConfig } from 'vitest/config';
import { testSeed } from './test/support/seed.ts';

// Before any worker starts: they must all find the same one.
testSeed();

export default defineConfig({
  resolve: { alias: { seine: new URL('./src/index.ts', import.meta.url).pathname } },
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed-properties.ts'],
    allowOnly: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A poll ends with what it waits for; its limit only tells that from never.
    expect: { poll: { timeout: 20_000 } },
    pool: 'forks',
    // Two cores: more files at once only wait for each other. `npm test` takes more where most wait.
    maxWorkers: 2,
  },
});
