import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { Database } from '../../../src/store/sqlite/connection/database.ts';
import { storeIn } from '../../../src/store/sqlite/sqlite-store.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';

const DAY_MS = 86_400_000;
const server = createServer((_, response) => response.end('<p>page</p>'));
let origin = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test('a host that was last asked under a clock a day ahead is asked again soon, and the run says why', async () => {
  const startedAt = Date.now();
  let skipped = 0;
  const warnings: string[] = [];
  const clock = { now: () => Date.now() + skipped };
  const { state, counters } = await crawl(
    { sources: [`${origin}/1`, `${origin}/2`], allowPrivate: true },
    {
      clock,
      storeIn(path) {
        const db = new Database(path);
        db.run(
          'INSERT INTO hosts (host, next_at) VALUES (?, ?)',
          new URL(origin).host,
          startedAt + DAY_MS + 5_000,
        );
        return storeIn(db);
      },
      onWarning(message) {
        warnings.push(message);
        // No longer than a permit that may still be out.
        skipped = LIMITS.permitMsMax;
      },
    },
  );
  expect({ state, done: counters.done }).toEqual({ state: 'done', done: 2 });
  expect(clock.now() - startedAt).toBeLessThan(DAY_MS / 24);
  expect(warnings).toEqual([
    'the clock was ahead: 1 hosts and tasks were to wait for more than 60 minutes; they are due now',
  ]);
});
