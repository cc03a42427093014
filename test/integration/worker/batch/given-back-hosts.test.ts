import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorkerTools } from '../../../../src/app/worker-app.ts';
import { type Batch, type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import { processBatch } from '../../../../src/worker/batch/process-batch.ts';
import { RequestGate } from '../../../../src/worker/batch/request-gate.ts';
import { WantedHosts } from '../../../../src/worker/batch/wanted-hosts.ts';
import { specOf } from '../../../support/fixtures.ts';
import { temporaryFolder } from '../../../support/seine-process.ts';
import { type ListingSite, startListingSite } from '../../../support/sites/listing-site.ts';

const folder = temporaryFolder();
let site: ListingSite;
let tools: Awaited<ReturnType<typeof openWorkerTools>>;

beforeAll(async () => {
  tools = await openWorkerTools({ name: 'test', blobs: folder.path, sync: false });
  site = await startListingSite({ '/page': { body: '<p>A page.</p>', type: 'text/html' } });
});
afterAll(async () => {
  await site.close();
  await tools.close();
  folder.remove();
});

/** Holds all answers, as those of others are held while an urgent job has its head start. */
class HoldingGate extends RequestGate {
  readonly #held = Promise.withResolvers<void>();
  held = 0;

  override answered(): Promise<void> {
    this.held++;
    return this.#held.promise;
  }

  goOn(): void {
    this.#held.resolve();
  }
}

test('a host that was given back is free when it has answered, also while the answers are not processed', async () => {
  const PARALLEL = 2;
  const now = tools.clock.now();
  const { host } = new URL(site.origin);
  const spec = specOf({ allowPrivate: true, politeness: { rate: 'max', robots: false } });
  const batch: Batch = {
    version: WIRE_VERSION,
    id: 1,
    job: { id: 1, name: 'test', specHash: '1', spec, bundle: null, epoch: '1' },
    needs: 'http',
    budgetMs: 60_000,
    permits: [{ host, startAt: now, endAt: now + 60_000, gapMs: 0, parallel: PARALLEL }],
    robots: [],
    tasks: [1, 2, 3, 4, 5].map((id) => ({
      ...{ id, url: `${site.origin}/page?${id}`, permit: 0, depth: 0, route: null, attempt: 1, hops: 0 },
      ...{ meta: null, lastVisit: null },
    })),
    archiveKey: 'archive/1',
    packKey: 'media/1',
  };
  const gate = new HoldingGate({ clock: tools.clock, busyMs: () => 0 });
  const wanted = new WantedHosts();
  const parts: Report[] = [];
  const report = processBatch(batch, { ...tools, gate }, { onPart: (part) => void parts.push(part), wanted });
  await expect.poll(() => gate.held).toBe(PARALLEL);
  wanted.ask([host]);
  const underWay = () => parts.flatMap(({ permits }) => permits.flatMap((use) => use.underWay ?? []));
  await expect.poll(underWay).toEqual([0]);
  gate.goOn();
  const kinds = [...parts, await report].flatMap(({ outcomes }) => outcomes.map(({ kind }) => kind));
  expect(kinds.toSorted()).toEqual(['deferred', 'deferred', 'deferred', 'fetched', 'fetched']);
});
