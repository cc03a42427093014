import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openFolderBlobs } from '../../../../src/blobs/folder-blobs.ts';
import type { Batch, Report } from '../../../../src/core/batch/batch.ts';
import { bundleKeyOf } from '../../../../src/job-file/load-handlers.ts';
import type { Delivery, Dispatcher } from '../../../../src/ports/dispatcher.ts';
import { batchOf, deliver, expectWhole, openSite, type Site } from '../../../contract/dispatcher-contract.ts';
import { temporaryFolder } from '../../../support/fixtures.ts';
import { type LambdaSetup, openLambdaSetup } from '../../../support/fleet/lambda-setup.ts';

let site: Site;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  site = await openSite();
  folder = await temporaryFolder();
});
beforeEach(() => {
  site.paths.length = 0;
});
afterAll(async () => {
  await site.close();
  await folder.remove();
});

/** Code whose handler does something on pages whose URL ends with `/bad`. */
async function withCode(deed: string): Promise<Pick<Batch['job'], 'bundle'>['bundle']> {
  const code = Buffer.from(
    `export default { routes: [{ name: 'p', handler: (page) => { if (page.url.endsWith('/bad')) { ${deed} } return { ok: 1 }; } }] };`,
  );
  const blobs = await openFolderBlobs(folder.dir);
  await blobs.put(bundleKeyOf(code), code);
  await blobs.close();
  return bundleKeyOf(code);
}

const spec = { routes: [{ name: 'p' }] };
const reasonOf = (delivery: Delivery) => (delivery.kind === 'lost' ? delivery.reason : 'it was not lost');
const kindsOf = (reports: Report[]) => reports.flatMap((part) => part.outcomes.map(({ kind }) => kind));

describe('a function of ordinary size', () => {
  let setup: LambdaSetup;
  let dispatcher: Dispatcher;
  beforeAll(async () => {
    setup = await openLambdaSetup(folder.dir, { concurrency: 1, memoryMb: 400 });
    dispatcher = await setup.open({ concurrency: 4 });
  });
  afterAll(async () => {
    await dispatcher.close();
    await setup.close();
  });

  test('calls that Lambda refuses are made again, each batch works once, and fewer are made at a time', async () => {
    const batches = [1, 2, 3, 4].map((id) => batchOf(site, { id, paths: [`/${id}/a`, `/${id}/b`] }));
    const answers = await Promise.all(batches.map((batch) => deliver(dispatcher, batch)));
    for (const [index, { reports }] of answers.entries()) expectWhole(batches[index]!, reports);
    expect(site.paths.toSorted()).toEqual(batches.flatMap(({ id }) => [`/${id}/a`, `/${id}/b`]));
    expect(dispatcher.slots).toBeLessThan(4);
    expect(dispatcher.workers).toBe(dispatcher.slots);
    expect(dispatcher.cost!()).toMatchObject({ invocations: 4 });
    expect(dispatcher.cost!().usd).toBeGreaterThan(0);
  });

  test('a batch that found no room while its permits were good comes back as it went, under no suspicion', async () => {
    const long = deliver(dispatcher, batchOf(site, { id: 1, paths: ['/slow'], budgetMs: 6_000 }));
    await expect.poll(() => site.paths).toEqual(['/slow']);
    const batch = batchOf(site, { id: 2, paths: ['/1', '/2'] });
    batch.permits[0]!.endAt = batch.permits[0]!.startAt + 500;
    batch.robots = [{ origin: site.origin, url: `${site.origin}/robots.txt`, permit: 0 }];
    const { delivery, reports } = await deliver(dispatcher, batch);
    expect(delivery.kind).toBe('report');
    expectWhole(batch, reports);
    expect(kindsOf(reports)).toEqual(['deferred', 'deferred']);
    expect(reports[0]).toMatchObject({
      permits: [{ sent: 0, lastSentAt: null }],
      robots: [{ kind: 'deferred', origin: site.origin }],
    });
    expect(reports[0]!.trouble ?? null).toBe(null);
    await long;
    expect(site.paths).toEqual(['/slow']);
  });

  test('an environment that is killed loses its batch, and the next gets a new one', async () => {
    const batch = batchOf(site, { id: 1, paths: ['/slow'] });
    const answer = deliver(dispatcher, batch);
    await expect.poll(() => site.paths).toEqual(['/slow']);
    for (const pid of setup.emulator.pidsOf('seine')) process.kill(pid, 'SIGKILL');
    const reason = reasonOf((await answer).delivery);
    expect(reason).toContain('Runtime.ExitError');
    // What the log of the function is searched for.
    expect(reason).toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
    const next = batchOf(site, { id: 2, paths: ['/1'] });
    expectWhole(next, (await deliver(dispatcher, next)).reports);
  });

  test('an answer whose coordinator is gone is taken by the next, and nothing of it stays', async () => {
    const gone = await setup.open();
    const batch = batchOf(site, { paths: ['/1', '/2', '/slow'], budgetMs: 3_000 });
    const answer = deliver(gone, batch);
    await expect.poll(() => site.paths.length).toBe(3);
    await gone.close();
    expect((await answer).delivery.kind).toBe('lost');
    // One of its tasks was settled before.
    const left: Batch = { ...batch, budgetMs: 20_000, tasks: batch.tasks.slice(1) };
    const reports: Report[] = [];
    const delivery = await dispatcher.adopt!(left, 'lambda', (part) => void reports.push(part));
    if (delivery.kind === 'report') reports.push(delivery.report);
    expectWhole(left, reports);
    expect(kindsOf(reports)).toEqual(['fetched', 'deferred']);
    expect(site.paths).toHaveLength(3);
    const blobs = await openFolderBlobs(folder.dir);
    await expect.poll(() => blobs.has(`${batch.archiveKey}-reply.json`)).toBe(false);
  });

  test('an answer in the blobs that the function did not sign is not taken', async () => {
    const batch = batchOf(site, { paths: ['/1'], budgetMs: 5_000 });
    const { reports } = await deliver(dispatcher, batch);
    const blobs = await openFolderBlobs(folder.dir);
    const forged = { kind: 'parts', parts: [{ plain: reports[0] }] };
    for (const answer of [forged, { kind: 'parts', parts: [] }, { kind: 'refused', reason: 'no' }, 7]) {
      await blobs.put(`${batch.archiveKey}-reply.json`, Buffer.from(JSON.stringify(answer)));
      expect(await dispatcher.adopt!(batch, 'lambda', () => {})).toMatchObject({
        kind: 'lost',
        blameless: true,
      });
    }
  });

  test('a page that takes all memory loses its batch', async () => {
    const bundle = await withCode(
      'globalThis.all = []; for (let i = 0; i < 60; i++) all.push(Buffer.alloc(1e7, 1)); return new Promise(() => {});',
    );
    const batch = batchOf(site, { id: 1, paths: ['/bad'], bundle, spec });
    expect(reasonOf((await deliver(dispatcher, batch)).delivery)).toMatch(/OutOfMemory|ExitError/);
  });

  test('a request that is too large takes the tasks that fit, and the others come back', async () => {
    const batch = batchOf(site, { paths: Array.from({ length: 8 }, (_, index) => `/${index}`) });
    for (const task of batch.tasks) task.meta = { noise: randomBytes(1_000_000).toString('base64') };
    const { reports } = await deliver(dispatcher, batch);
    expectWhole(batch, reports);
    expect(kindsOf(reports)).toEqual([...Array(4).fill('fetched'), ...Array(4).fill('deferred')]);
    expect(site.paths).toHaveLength(4);
  });

  test('a task that fits into no request is put off, and the run is told', async () => {
    const batch = batchOf(site, { paths: ['/1'] });
    batch.tasks[0]!.meta = { noise: randomBytes(6_000_000).toString('base64') };
    const { reports } = await deliver(dispatcher, batch);
    expectWhole(batch, reports);
    expect(reports[0]!.trouble).toContain('too large for one Lambda call');
  });

  test('an answer that is too large is fetched from the blobs, and nothing of it stays there', async () => {
    const bundle = await withCode(
      "return { noise: Array.from({ length: 40 }, () => crypto.getRandomValues(Buffer.alloc(60000)).toString('base64')).join('') };",
    );
    const paths = ['/a/bad', '/b/bad', '/c/bad', '/1'];
    const batch = batchOf(site, { paths, bundle, spec });
    const { reports } = await deliver(dispatcher, batch);
    expectWhole(batch, reports);
    const records = reports
      .flatMap((part) => part.outcomes)
      .flatMap((outcome) => (outcome.kind === 'fetched' ? outcome.records : []));
    expect(records.map(({ json }) => json.length > 3_000_000)).toEqual([true, true, true, false]);
    const blobs = await openFolderBlobs(folder.dir);
    const answers = async () => {
      const keys: string[] = [];
      for await (const { key } of blobs.list('warc/')) if (key.includes('answer')) keys.push(key);
      return keys;
    };
    await expect.poll(answers).toEqual([]);
    await blobs.close();
  });

  test('a call that is made twice does not touch what the first has stored', async () => {
    const batch = batchOf(site, { id: 77, paths: ['/1'] });
    const [first, second] = [await deliver(dispatcher, batch), await deliver(dispatcher, batch)];
    const archives = [first, second].map(
      ({ reports }) => reports.flatMap(({ archive }) => archive ?? [])[0]!,
    );
    expect(archives[0]?.key).not.toBe(archives[1]?.key);
    const blobs = await openFolderBlobs(folder.dir);
    expect(await blobs.read(archives[0]!.key)).toHaveLength(archives[0]!.bytes);
    await blobs.close();
  });

  test('is not used when it is not there, or keeps its pages elsewhere', async () => {
    await expect(setup.open({ name: 'nobody' })).rejects.toThrow('the function nobody does not exist');
    const blobs = { place: 's3://other/place', open: async () => openFolderBlobs(folder.dir) };
    await expect(setup.open({ blobs })).rejects.toThrow(
      /stores pages in .*, but this run stores them in s3:\/\/other\/place/,
    );
  });

  test('when Lambda is gone, tasks come back as they went, and the run is told', async () => {
    const other = await openLambdaSetup(folder.dir);
    const lonely = await other.open();
    await other.close();
    const batch = batchOf(site, { paths: ['/1', '/2'] });
    batch.secretHeaders = { [site.origin]: { authorization: '127.0.0.1' } };
    // Of a call on a connection that breaks under it nobody knows whether it has run.
    await deliver(lonely, batch);
    const { reports } = await deliver(lonely, batch);
    await lonely.close();
    expectWhole(batch, reports);
    expect(kindsOf(reports)).toEqual(['deferred', 'deferred']);
    expect(reports[0]!.trouble).toContain('ECONNREFUSED');
    expect(reports[0]!.trouble).not.toContain('127.0.0.1');
  });
});

describe('a function with little time', () => {
  let setup: LambdaSetup;
  let dispatcher: Dispatcher;
  beforeAll(async () => {
    setup = await openLambdaSetup(folder.dir, { timeoutSeconds: 6 });
    dispatcher = await setup.open();
  });
  afterAll(async () => {
    await dispatcher.close();
    await setup.close();
  });

  test('answers before it is killed: what is done, and the rest as deferred', async () => {
    const batch = batchOf(site, { paths: ['/1', '/slow'] });
    const { reports } = await deliver(dispatcher, batch);
    expectWhole(batch, reports);
    expect(kindsOf(reports)).toEqual(['fetched', 'deferred']);
  });

  test('that has an endless loop in a handler answers in time: the page has failed, its neighbours go back', async () => {
    const bundle = await withCode('for (;;);');
    const limited = { ...spec, timeouts: { taskMs: 2_000 } };
    const batch = batchOf(site, { id: 1, paths: ['/bad', '/1'], bundle, spec: limited });
    const { delivery, reports } = await deliver(dispatcher, batch);
    expect(delivery.kind).toBe('report');
    expectWhole(batch, reports);
    const [bad, other] = batch.tasks.map(
      ({ id }) => reports.flatMap((part) => part.outcomes).find(({ taskId }) => taskId === id)!,
    );
    expect(bad).toMatchObject({ kind: 'failed', code: 'parse-error' });
    expect(other).not.toMatchObject({ code: 'parse-error' });
    const next = batchOf(site, { id: 2, paths: ['/1'] });
    expectWhole(next, (await deliver(dispatcher, next)).reports);
  });
});
