import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { summarize } from '../../../src/coordinator/jobs.ts';
import { latestQualityOf, qualityOf } from '../../../src/coordinator/reports/quality.ts';
import type { Job, Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import {
  change,
  createJob,
  enqueue,
  leaseOne,
  recordOf,
  settlementOf,
  T0,
  tasksOf,
  temporaryFolder,
} from '../../support/fixtures.ts';

/** What a pass is compared with. */

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: Store;
let urls = 0;

beforeEach(async () => {
  folder = await temporaryFolder();
  store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
});

afterEach(async () => {
  await store.close();
  await folder.remove();
});

/** One page whose batch reports so many records, of which so many have a price, and so many pages without any. */
async function report(job: Job, records: number, priced: number, blank = 0): Promise<void> {
  const url = `https://shop.example/${urls++}`;
  await enqueue(store, job, tasksOf(url));
  const batch = await leaseOne(store, job);
  const changes = batch.tasks.map(({ id }) => change.fetched(id, { records: [recordOf(url, { n: urls })] }));
  const filled: Record<string, number> = records > 0 ? { price: priced } : {};
  const quality = [{ route: 'product', records, invalid: 0, blank, filled }];
  await store.frontier.settle(settlementOf(job, batch.id, changes, { quality }));
}

const nextPass = ({ id, spec, specHash, bundle, file }: Job) =>
  store.jobs.beginPass(id, { spec, specHash, bundle, file, now: T0 + 1_000 });

const drops = async (job: Job) => (await qualityOf(store, job)).flatMap((route) => route.drops);

test('the pass before comes first, then the run before', async () => {
  const first = await createJob(store, 'shop');
  await report(first, 100, 100);
  expect(await drops(first)).toEqual([]);
  const second = await createJob(store, 'shop');
  await report(second, 100, 80);
  expect(await drops(second)).toEqual([{ field: 'price', before: 1, now: 0.8 }]);
  const again = await nextPass(second);
  await report(again, 100, 60);
  expect(await drops(again)).toEqual([{ field: 'price', before: 0.8, now: 0.6 }]);
  const third = await createJob(store, 'shop');
  await report(third, 100, 10);
  expect(await drops(third)).toEqual([{ field: 'price', before: 0.6, now: 0.1 }]);
});

test('a pass in which little changed is passed over', async () => {
  let job = await createJob(store, 'shop');
  await report(job, 100, 100);
  job = await nextPass(job);
  await report(job, 3, 0);
  expect(await drops(job)).toEqual([]);
  job = await nextPass(job);
  await report(job, 100, 50);
  expect(await drops(job)).toEqual([{ field: 'price', before: 1, now: 0.5 }]);
});

test('a site with few pages is compared with its newest pass that has some', async () => {
  let job = await createJob(store, 'shop');
  await report(job, 12, 12);
  job = await nextPass(job);
  await report(job, 2, 0);
  expect(await drops(job)).toEqual([]);
  job = await nextPass(job);
  await report(job, 12, 0);
  expect(await drops(job)).toEqual([{ field: 'price', before: 1, now: 0 }]);
});

test('pages that lost all their fields are counted, and their route is not shown unless it had records', async () => {
  let job = await createJob(store, 'shop');
  await report(job, 100, 100);
  job = await nextPass(job);
  await report(job, 0, 0, 60);
  await report(job, 0, 0, 40);
  expect(await latestQualityOf(store, job)).toMatchObject({
    pass: 2,
    routes: [{ route: 'product', records: 0, score: 0, drops: [{ field: 'price', before: 1, now: 0 }] }],
  });
  const other = await createJob(store, 'blog');
  await report(other, 0, 0, 50);
  expect(await latestQualityOf(store, other)).toEqual({ pass: null, routes: [] });
});

test('other jobs are no measure, whatever their name', async () => {
  const other = await createJob(store, 'shop-1');
  await report(other, 100, 100);
  const first = await createJob(store, 'shop');
  const second = await createJob(store, 'shop');
  await report(second, 100, 0);
  expect([first.run, second.run]).toEqual([1, 2]);
  expect(await drops(second)).toEqual([]);
});

test('a summary says what the present pass has added', async () => {
  const job = await createJob(store, 'shop');
  await report(job, 1, 1);
  const before = await summarize(store, job, { alive: false });
  expect(before).toMatchObject({ pass: 1, accepted: 1, records: 1 });
  expect(before).not.toHaveProperty('thisPass');
  const next = await nextPass(job);
  await report(next, 1, 1);
  await report(next, 1, 1);
  expect(await summarize(store, next, { alive: false })).toMatchObject({
    pass: 2,
    accepted: 3,
    records: 3,
    thisPass: { accepted: 2, records: 2, requests: 2, batches: 2, retries: 0 },
  });
});

test('a pass in which nothing changed leaves the figures of the last one that has some, and says so', async () => {
  let job = await createJob(store, 'shop');
  expect(await latestQualityOf(store, job)).toEqual({ pass: null, routes: [] });
  await report(job, 100, 90);
  job = await nextPass(await nextPass(job));
  expect(await qualityOf(store, job)).toEqual([]);
  expect(await summarize(store, job, { alive: false })).toMatchObject({
    pass: 3,
    qualityPass: 1,
    quality: [{ route: 'product', records: 100, fields: { price: 0.9 } }],
  });
  await report(job, 5, 5);
  expect(await summarize(store, job, { alive: false })).toMatchObject({
    qualityPass: 3,
    quality: [{ records: 5 }],
  });
});
