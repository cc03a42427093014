import { defineConfig } from 'vitest/config';
import { threadsFromOneFile } from './test/support/bundle-thread.ts';
import { useCompileCache } from './test/support/compile-cache.ts';
import { testSeed } from './test/support/seed.ts';
import { SlowestFirst } from './test/support/slowest-first.ts';

// Before any worker starts: they must all find the same one.
testSeed();
useCompileCache();

export default defineConfig({
  plugins: [threadsFromOneFile()],
  resolve: { alias: { seine: new URL('./src/index.ts', import.meta.url).pathname } },
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed-properties.ts', 'test/support/restore-process.ts'],
    allowOnly: false,
    // Limits only tell what takes long from what never ends: a test that has a limit of its own fails on a busy machine.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    // A process for each file would spend a tenth of the time on loading the same modules again. So a test leaves no
    // listener and no timer behind; `restore-process.ts` sees to the environment.
    isolate: false,
    sequence: { sequencer: SlowestFirst },
    // Two cores: more files at once only wait for each other. `npm test` takes more where most wait.
    maxWorkers: 2,
  },
});
