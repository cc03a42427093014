import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Where the tests are that take longest, longest first. A long file that starts last leaves all cores but one without
 * work, and Vitest knows the times only where the tests ran before; within a folder it begins with the largest file.
 */
const SLOWEST = [
  'test/e2e/docs',
  // Small files, as the tests are those of a contract.
  'test/integration/store/postgres/postgres-store.test.ts',
  'test/e2e/fleet',
  'test/sim',
  'test/integration/store/postgres',
  'test/e2e/hostile',
  'test/e2e/politeness',
  'test/integration/lambda-emulator',
  'test/e2e/storage',
  'test/e2e',
  'test/integration/transport',
  'test/integration/fetch',
  'test/integration/worker',
  'test/integration/sources',
  'test/integration/store',
  'test/integration/blobs',
  'test/integration/server',
  'test/integration/coordinator',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const missing = SLOWEST.filter((slow) => !existsSync(join(root, slow)));
    if (missing.length > 0)
      throw new Error(`slowest-first.ts lists what does not exist: ${missing.join(', ')}`);
    const rank = ({ moduleId }: TestSpecification) => {
      const path = relative(root, moduleId);
      const place = SLOWEST.findIndex((slow) => path === slow || path.startsWith(`${slow}/`));
      return place === -1 ? SLOWEST.length : place;
    };
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
