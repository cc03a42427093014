import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorkerTools } from '../../../src/app/worker-app.ts';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { jobEnvironment } from '../../../src/config/job-environment.ts';
import type { Batch } from '../../../src/core/batch/batch.ts';
import { bundleKeyOf } from '../../../src/job-file/load-handlers.ts';
import type { Delivery, Dispatcher } from '../../../src/ports/dispatcher.ts';
import { openInlineDispatcher } from '../../../src/transport/inline-dispatcher.ts';
import { SuspectProcess } from '../../../src/transport/thread/suspect-process.ts';
import {
  openThreadDispatcher,
  type ThreadDispatcherOptions,
} from '../../../src/transport/thread/thread-dispatcher.ts';
import { openWeightedDispatcher } from '../../../src/transport/weighted-dispatcher.ts';
import { processBatch } from '../../../src/worker/batch/process-batch.ts';
import type { JobHandlers } from '../../../src/worker/job/route-code.ts';
import {
  batchOf,
  deliver,
  ENDS_MS,
  expectWhole,
  openSite,
  runDispatcherContract,
  type Site,
  within,
} from '../../contract/dispatcher-contract.ts';
import { temporaryFolder } from '../../support/fixtures.ts';

const SUSPECTS = new URL('../../../src/entry/suspects.ts', import.meta.url);
const ENTRY = new URL('../../../src/entry/thread.ts', import.meta.url);

function openThreads(blobsDir: string, options: Partial<ThreadDispatcherOptions> = {}): Dispatcher {
  return openThreadDispatcher({
    threads: 2,
    entry: ENTRY,
    env: jobEnvironment(process.env, []),
    data: { blobs: blobsDir, sync: false },
    ...options,
  });
}

async function openInline(blobsDir: string, handlers?: JobHandlers): Promise<Dispatcher> {
  await mkdir(blobsDir, { recursive: true });
  const tools = await openWorkerTools({ name: 'inline', blobs: blobsDir, sync: false }, handlers);
  return openInlineDispatcher((batch, options) => processBatch(batch, tools, options), tools.close);
}

runDispatcherContract('threads', async (blobsDir) => openThreads(blobsDir));
runDispatcherContract('inline', (blobsDir) => openInline(blobsDir));
runDispatcherContract('two at once', async (blobsDir) =>
  openWeightedDispatcher([
    { dispatcher: openThreads(blobsDir, { threads: 1 }), weight: 2 },
    { dispatcher: openThreads(blobsDir, { threads: 1 }), weight: 1 },
  ]),
);

let site: Site;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  site = await openSite();
  folder = await temporaryFolder();
});
afterAll(async () => {
  await site.close();
  await folder.remove();
});

/** Code whose handler does something terrible on pages whose URL ends with `/bad`. */
async function terrible(deed: string): Promise<string> {
  const code = Buffer.from(
    `export default { routes: [{ name: 'p', handler: (page) => { if (page.url.endsWith('/bad')) { ${deed} } return { ok: 1 }; } }] };`,
  );
  const blobs = await openFolderBlobs(folder.dir);
  await blobs.put(bundleKeyOf(code), code);
  await blobs.close();
  return bundleKeyOf(code);
}

test('threads have one address: the second lane of a host goes back at once', async () => {
  const dispatcher = openThreads(folder.dir, { name: 'machine-1' });
  const laneOf = (id: number): Batch => {
    const batch = batchOf(site, { id, paths: [`/${id}`], gapMs: 10 });
    const addresses = { gapsMs: { 'machine-1': 20 }, otherMs: 10, lanes: 2, knownPage: null };
    return { ...batch, permits: [{ ...batch.permits[0]!, addresses }] };
  };
  try {
    const both = await Promise.all([laneOf(1), laneOf(2)].map((batch) => deliver(dispatcher, batch)));
    const kinds = both.map(({ reports }) =>
      reports.flatMap(({ outcomes }) => outcomes.map(({ kind }) => kind)),
    );
    expect(kinds).toEqual([['fetched'], ['deferred']]);
    const last = both[1]!.reports.at(-1);
    expect(last).toMatchObject({ worker: 'machine-1', permits: [{ sent: 0, finished: true }] });
    const third = await deliver(dispatcher, laneOf(3));
    expect(third.reports.flatMap(({ outcomes }) => outcomes)).toMatchObject([{ kind: 'fetched' }]);
  } finally {
    await dispatcher.close();
  }
});

test('an urgent batch goes to the thread with the fewest that are as urgent, whatever else the threads have', async () => {
  const dispatcher = openThreads(folder.dir);
  const batches = (count: number, paths: string[], priority = 0) =>
    Array.from({ length: count }, () => batchOf(site, { paths, spec: { priority } }));
  try {
    // By turns: those that take long are all on one thread.
    const [slow, quick] = [batches(2, ['/slow']), batches(2, ['/1'])];
    const done = [slow[0]!, quick[0]!, slow[1]!, quick[1]!].map((batch) => deliver(dispatcher, batch));
    await Promise.all([done[1], done[3]]);
    const urgent = batches(2, ['/2'], 10).map((batch) => deliver(dispatcher, batch));
    const workers = (await Promise.all(urgent)).map(({ reports }) => reports.at(-1)!.worker);
    expect(workers.toSorted()).toEqual(['thread-1', 'thread-2']);
    await dispatcher.drain();
    await Promise.all(done);
  } finally {
    await dispatcher.close();
  }
});

describe('threads that are not needed yet', () => {
  /** Threads that write down their names when they start. */
  async function openCounted(name: string) {
    const [entry, list] = [join(folder.dir, `${name}.mjs`), join(folder.dir, `${name}.txt`)];
    await writeFile(list, '');
    await writeFile(
      entry,
      `import { appendFileSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
appendFileSync(${JSON.stringify(list)}, workerData.name + '\\n');
await import(${JSON.stringify(ENTRY.href)});`,
    );
    const dispatcher = openThreadDispatcher({
      ...{ threads: 3, entry: pathToFileURL(entry), env: {} },
      data: { blobs: folder.dir, sync: false },
    });
    const started = async () => (await readFile(list, 'utf8')).trim().split('\n').sort();
    return { dispatcher, started };
  }

  test('start with their first batch', async () => {
    const { dispatcher, started } = await openCounted('first-batch');
    try {
      expect(dispatcher).toMatchObject({ workers: 3, slots: 24 });
      for (const id of [1, 2]) await deliver(dispatcher, batchOf(site, { id, paths: ['/1'] }));
      expect(await started()).toEqual(['thread-1']);
      await Promise.all([3, 4].map((id) => deliver(dispatcher, batchOf(site, { id, paths: ['/1'] }))));
      expect(await started()).toEqual(['thread-1', 'thread-2']);
    } finally {
      await dispatcher.close();
    }
  });

  test('know of a drain that was before', async () => {
    const { dispatcher } = await openCounted('drained');
    try {
      await dispatcher.drain();
      site.paths.length = 0;
      const both = [1, 2].map((id) => deliver(dispatcher, batchOf(site, { id, paths: ['/slow'] })));
      const outcomes = (await Promise.all(both)).flatMap(({ reports }) =>
        reports.flatMap((report) => report.outcomes),
      );
      expect(outcomes).toMatchObject([{ kind: 'deferred' }, { kind: 'deferred' }]);
      expect(site.paths).toEqual([]);
    } finally {
      await dispatcher.close();
    }
  });

  test('start when someone waits for them', async () => {
    const { dispatcher, started } = await openCounted('waited-for');
    try {
      await dispatcher.started;
      expect(await started()).toEqual(['thread-1', 'thread-2', 'thread-3']);
    } finally {
      await dispatcher.close();
    }
  });
});

describe('threads that die', () => {
  let dispatcher: Dispatcher;
  beforeAll(() => {
    dispatcher = openThreads(folder.dir, { heapMbMax: 64 });
  });
  afterAll(() => dispatcher.close());

  test.each([
    ['leaves the process', 'process.exit(3);'],
    [
      'leaves the process later',
      'return new Promise((resolve) => setTimeout(resolve)).then(() => process.exit(3));',
    ],
    ['takes all memory', 'const all = []; for (;;) all.push(new Array(1e5).fill(Math.random()));'],
  ])(
    'a handler that %s: its batch is lost by its task, the others go on, the thread is replaced',
    async (_, deed) => {
      const bundle = await terrible(deed);
      const spec = { routes: [{ name: 'p' }] };
      const bad = batchOf(site, { id: 1, paths: ['/1', '/bad'], bundle, spec });
      const others = [2, 3, 4].map((id) => batchOf(site, { id, paths: [`/${id}`, `/${id}/x`] }));
      const [lost, ...answers] = await Promise.all(
        [bad, ...others].map((batch) => deliver(dispatcher, batch)),
      );
      expect(lost!.delivery).toMatchObject({
        kind: 'lost',
        batchId: 1,
        ended: true,
        running: [bad.tasks[1]!.id],
      });
      expect((lost!.delivery as Extract<Delivery, { kind: 'lost' }>).reason.length).toBeGreaterThan(5);
      for (const [index, { delivery, reports }] of answers.entries()) {
        // A batch in the same thread goes down with it, and is not to blame; one in the other thread does not.
        if (delivery.kind === 'report') expectWhole(others[index]!, reports);
        else expect(delivery.running).toEqual([]);
      }
      expect(answers.some(({ delivery }) => delivery.kind === 'report')).toBe(true);
      for (let id = 10; id < 14; id++) {
        const batch = batchOf(site, { id, paths: [`/${id}`] });
        expectWhole(batch, (await deliver(dispatcher, batch)).reports);
      }
    },
  );

  test.each([
    ['throws', "setTimeout(() => { throw new Error('stray'); }); return new Promise(() => {});"],
    ['rejects', "Promise.reject(new Error('stray')); return new Promise(() => {});"],
    ['rejects at once and goes on', "Promise.reject(new Error('stray'));"],
    ['forgets to await', "(async () => { await null; throw new Error('stray'); })();"],
  ])('a handler that %s where nothing listens: its page has failed, and nothing is lost', async (_, deed) => {
    const bundle = await terrible(deed);
    const spec = { routes: [{ name: 'p' }] };
    const batch = batchOf(site, { id: 1, paths: ['/1', '/bad', '/2'], bundle, spec });
    const { reports } = await deliver(dispatcher, batch);
    expectWhole(batch, reports);
    const outcomes = reports.flatMap((report) => report.outcomes);
    const of = (index: number) => outcomes.find(({ taskId }) => taskId === batch.tasks[index]!.id);
    const detail = "the handler of route 'p' started something without await, and that failed: stray";
    expect(of(1)).toMatchObject({ kind: 'failed', code: 'parse-error', detail });
    expect([of(0)?.kind, of(2)?.kind]).toEqual(['fetched', 'fetched']);
  });

  test('an endless loop has failed when the time of its task is over; its neighbours are not to blame', async () => {
    const single = openThreads(folder.dir, { threads: 1 });
    const bundle = await terrible('for (;;);');
    const spec = { routes: [{ name: 'p' }], timeouts: { taskMs: 1_000 } };
    const batch = batchOf(site, { id: 1, paths: ['/bad', '/1'], bundle, spec });
    const answers = await within(
      2 * ENDS_MS,
      Promise.all([deliver(single, batch), deliver(single, batchOf(site, { id: 2, paths: ['/slow'] }))]),
    );
    await single.close();
    expect(answers).toMatchObject([
      { delivery: { kind: 'lost', batchId: 1, blameless: true } },
      { delivery: { kind: 'lost', batchId: 2, blameless: true } },
    ]);
    const [own] = answers as Exclude<typeof answers, string>;
    const outcomes = own!.reports.flatMap((report) => report.outcomes);
    expect(outcomes).toContainEqual(
      expect.objectContaining({
        kind: 'failed',
        taskId: batch.tasks[0]!.id,
        code: 'parse-error',
        detail: 'the handler did not finish within 1000 ms',
      }),
    );
  });

  test('suspects run in a process of their own: one that ends it takes nothing else with it', async () => {
    const apart = openThreads(folder.dir, { threads: 1, suspectEntry: SUSPECTS });
    const bundle = await terrible("process.kill(process.pid, 'SIGKILL');");
    const spec = { routes: [{ name: 'p' }] };
    const suspects = (id: number, ...paths: string[]): Batch => ({
      ...batchOf(site, { id, paths, bundle, spec }),
      suspects: true,
    });
    site.paths.length = 0;
    const neighbour = deliver(apart, batchOf(site, { id: 1, paths: ['/slow'] }));
    await expect.poll(() => site.paths).toContain('/slow');
    const [bad, good] = [suspects(2, '/bad'), suspects(3, '/1', '/2')];
    const [lost, kept] = await Promise.all([deliver(apart, bad), deliver(apart, good)]);
    expect(lost).toMatchObject({ delivery: { kind: 'lost', batchId: 2, ended: true } });
    expectWhole(good, kept.reports);
    await apart.drain();
    expect(await neighbour).toMatchObject({ delivery: { kind: 'report' } });
    await apart.close();
  });

  test('a process of suspects that stands still is ended, and the next batch has another', async () => {
    const { data, env } = { data: { blobs: folder.dir, sync: false }, env: jobEnvironment(process.env, []) };
    const options = { entry: SUSPECTS, thread: ENTRY, data, env, name: 'suspects', answerMs: 100 };
    const apart = new SuspectProcess(options);
    const bundle = await terrible("process.kill(process.pid, 'SIGSTOP');");
    const spec = { routes: [{ name: 'p' }] };
    // Enough to begin: one that has not begun by then is ended as well.
    const bad = batchOf(site, { id: 1, paths: ['/bad'], bundle, spec, budgetMs: 2_000 });
    const good = batchOf(site, { id: 2, paths: ['/1'], bundle, spec });
    const answers = Promise.all([bad, good].map((batch) => apart.dispatch(batch, () => {})));
    const delivered = await within(2 * ENDS_MS, answers);
    await apart.close();
    expect(delivered).toMatchObject([{ kind: 'lost', batchId: 1, ended: true }, { kind: 'report' }]);
  });

  test('a worker that never answers is given up some time after its budget, and replaced', async () => {
    const single = openThreads(folder.dir, { threads: 1 });
    const bundle = await terrible('for (;;);');
    const batch = batchOf(site, {
      id: 1,
      paths: ['/bad'],
      bundle,
      // Enough to get the page, also on a busy machine: then its code has begun.
      budgetMs: 2_000,
      spec: { routes: [{ name: 'p' }] },
    });
    const answer = await within(2 * ENDS_MS, deliver(single, batch));
    const next = batchOf(site, { id: 2, paths: ['/1'] });
    const following = answer === 'too late' ? answer : await within(ENDS_MS, deliver(single, next));
    await single.close();
    expect(answer).toMatchObject({ delivery: { kind: 'lost', batchId: 1 } });
    expect(following).toMatchObject({ delivery: { kind: 'report' } });
  });
});

describe('threads that do not start', () => {
  test('every batch is lost with the reason, and closing still ends', async () => {
    const entry = join(folder.dir, 'broken.mjs');
    await writeFile(entry, "throw new Error('cannot begin');");
    const dispatcher = openThreads(folder.dir, { threads: 2, entry: pathToFileURL(entry) });
    for (let id = 1; id <= 8; id++) {
      const delivery = await within(
        ENDS_MS,
        dispatcher.dispatch(batchOf(site, { id, paths: ['/1'] }), () => {}),
      );
      expect(delivery).toMatchObject({
        kind: 'lost',
        batchId: id,
        reason: expect.stringContaining('cannot begin'),
      });
    }
    await expect
      .poll(() => dispatcher.refusal?.('http')?.message, { timeout: ENDS_MS })
      .toBe('cannot start worker threads: cannot begin');
    expect(await within(ENDS_MS, dispatcher.close())).not.toBe('too late');
  });

  test('a file that is not there is said at once, with what to do', () => {
    const entry = pathToFileURL(join(folder.dir, 'missing.mjs'));
    expect(() => openThreads(folder.dir, { entry })).toThrow('a file of Seine is missing');
  });
});

describe('threads that are to be fewer', () => {
  test('finish their batches first, take no more, and come back when they are needed', async () => {
    const threads = { min: 1, max: 2, first: 2, keepMs: 50, lookMs: 10 };
    const dispatcher = openThreads(folder.dir, { threads });
    const running = async () => (await dispatcher.heartbeats!())[0]!.threads;
    try {
      site.paths.length = 0;
      const slow = [1, 2].map((id) => deliver(dispatcher, batchOf(site, { id, paths: ['/slow', '/1'] })));
      // Two batches need one thread only.
      await expect.poll(() => dispatcher.workers, { timeout: ENDS_MS }).toBe(1);
      expect(dispatcher.decisions?.at(-1)?.text).toMatch(/^1 thread instead of 2: fewer were enough/);
      await expect.poll(() => site.paths.filter((path) => path === '/slow').length).toBe(2);
      expect(await running()).toBe(2);
      for (const id of [1, 2]) dispatcher.recall?.(id);
      for (const { reports } of await Promise.all(slow)) expect(reports.at(-1)?.final).toBe(true);
      await expect.poll(running, { timeout: ENDS_MS }).toBe(1);

      const many = Array.from({ length: 12 }, (_, index) =>
        deliver(dispatcher, batchOf(site, { id: 10 + index, paths: ['/slow'] })),
      );
      await expect.poll(() => dispatcher.workers, { timeout: ENDS_MS }).toBe(2);
      await dispatcher.drain();
      for (const { reports } of await Promise.all(many)) expect(reports.at(-1)?.final).toBe(true);
    } finally {
      await dispatcher.close();
    }
  });
});

describe('closing threads', () => {
  test('ends them within seconds, with batches still out', async () => {
    const dispatcher = openThreads(folder.dir);
    site.paths.length = 0;
    const answers = [1, 2, 3].map((id) => deliver(dispatcher, batchOf(site, { id, paths: ['/slow'] })));
    await expect.poll(() => site.paths.length).toBe(3);
    expect(await within(ENDS_MS, dispatcher.close())).not.toBe('too late');
    for (const { delivery } of await Promise.all(answers)) {
      if (delivery.kind === 'report') expect(delivery.report.final).toBe(true);
      else expect(delivery.kind).toBe('lost');
    }
  });
});

describe('inline', () => {
  test('closures given to it run, also when the job has no stored code', async () => {
    const seen: string[] = [];
    const handlers: JobHandlers = new Map([['p', { handler: (page) => ({ count: seen.push(page.url) }) }]]);
    const dispatcher = await openInline(folder.dir, handlers);
    const batch = batchOf(site, { paths: ['/1', '/2'], spec: { routes: [{ name: 'p' }] } });
    const { reports } = await deliver(dispatcher, batch);
    await dispatcher.close();
    expectWhole(batch, reports);
    expect(seen.sort()).toEqual([`${site.origin}/1`, `${site.origin}/2`]);
  });

  test('a process that throws loses its batch and nothing else', async () => {
    const dispatcher = openInlineDispatcher(
      async () => {
        throw new Error('broken');
      },
      async () => {},
    );
    expect(await dispatcher.dispatch(batchOf(site, { id: 7, paths: ['/1'] }), () => {})).toEqual({
      kind: 'lost',
      batchId: 7,
      reason: 'broken',
    });
  });
});
