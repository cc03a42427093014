import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest goes first, so that nothing long is left over for the end, when only one core has work. */
const LONGEST = [
  'e2e/crash',
  'integration/postgres-store',
  'integration/postgres-faults',
  'e2e/s3',
  'e2e/sources',
  'e2e/examples',
  'e2e/browser',
  'e2e/fleet-browser',
  'e2e/fleet-bullmq',
  'e2e/media',
  'integration/hostile',
  'e2e/proxies',
].map((name) => `/test/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONGEST.findIndex((ending) => moduleId.endsWith(ending));
      return at === -1 ? LONGEST.length : at;
    };
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  resolve: { alias: { seine: new URL('./src/index.ts', import.meta.url).pathname } },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Two cores: more files at once only make timing tests wait for each other.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
});
