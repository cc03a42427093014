import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files that take longest, longest first. A long file that starts last leaves all cores but one without work, and
 * Vitest knows the times only where the tests ran before.
 */
const SLOWEST = [
  'test/e2e/fleet/fleet-browser.test.ts',
  'test/integration/store/postgres/postgres-store.test.ts',
  'test/e2e/fleet/fleet-postgres.test.ts',
  'test/integration/store/postgres/postgres-faults.test.ts',
  'test/e2e/sources/sources.test.ts',
  'test/integration/coordinator/bans.test.ts',
  'test/e2e/hostile/hostile.test.ts',
  'test/e2e/browser/browser.test.ts',
  'test/e2e/storage/s3.test.ts',
  'test/e2e/hostile/hostile-neighbours.test.ts',
  'test/integration/transport/dispatchers.test.ts',
  'test/e2e/blocking/proxies.test.ts',
  'test/e2e/crawl/crash.test.ts',
  'test/e2e/politeness/sick-pages.test.ts',
  'test/e2e/examples/examples.test.ts',
  'test/e2e/politeness/polite.test.ts',
  'test/e2e/data/media.test.ts',
  'test/integration/worker/hostile.test.ts',
  'test/integration/store/sqlite/sqlite-store.test.ts',
  'test/integration/fetch/browser/browser-crash.test.ts',
  'test/e2e/fleet/fleet-bullmq.test.ts',
  'test/e2e/cli/bad-settings.test.ts',
  'test/e2e/politeness/adaptive.test.ts',
  'test/e2e/blocking/identity.test.ts',
  'test/e2e/politeness/robots-piggyback.test.ts',
  'test/integration/transport/bullmq/bullmq-shared.test.ts',
  'test/integration/sources/parquet.test.ts',
  'test/integration/lambda-emulator/lambda-image.test.ts',
  'test/integration/transport/lambda/lambda-faults.test.ts',
  'test/integration/sources/parquet-broken.test.ts',
  'test/integration/transport/bullmq/bullmq-forgery.test.ts',
  'test/e2e/politeness/breakers.test.ts',
  'test/integration/blobs/s3-errors.test.ts',
  'test/e2e/fleet/fleet-matrix.test.ts',
  'test/integration/sources/csv-broken.test.ts',
  'test/e2e/sources/catalogue.test.ts',
  'test/integration/coordinator/outage.test.ts',
  'test/integration/store/postgres/postgres-fleet.test.ts',
  'test/integration/coordinator/malformed-reports.test.ts',
  'test/integration/blobs/s3-blobs.test.ts',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const missing = SLOWEST.filter((path) => !existsSync(join(root, path)));
    if (missing.length > 0)
      throw new Error(`slowest-first.ts lists what does not exist: ${missing.join(', ')}`);
    const rank = ({ moduleId }: TestSpecification) => {
      const place = SLOWEST.indexOf(relative(root, moduleId));
      return place === -1 ? SLOWEST.length : place;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
