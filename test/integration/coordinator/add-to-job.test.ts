import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { addRows, addToJob } from '../../../src/coordinator/sources/add-to-job.ts';
import type { Job, Store } from '../../../src/ports/store.ts';
import { RowRoom } from '../../../src/server/api/scrape/row-room.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { codeOf, collect, T0, temporaryFolder } from '../../support/fixtures.ts';

/** URLs that are added to jobs in every state. */

const paths: string[] = [];
let onRequest: (path: string) => Promise<void> = async () => {};
const server = createServer((request, response) => {
  paths.push(request.url!);
  void onRequest(request.url!).then(() => response.end('x'));
});
let origin: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  paths.length = 0;
  onRequest = async () => {};
});

const now = () => T0;
const rowsOf = (...names: string[]) => names.map((name) => ({ url: `${origin}/${name}`, meta: null }));

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const folder = await temporaryFolder();
  const store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
  try {
    await work(store);
  } finally {
    await store.close();
    await folder.remove();
  }
}

test('a running job fetches what is added, each URL once', async () => {
  let place: { store: Store; job: Job } | null = null;
  onRequest = async (path) => {
    if (path !== '/first') return;
    // While this page is on its way, in the middle of the run.
    const { store, job } = place!;
    expect(
      await addToJob(store, job.id, rowsOf('first', 'second', 'third', 'second'), { now }),
    ).toMatchObject({
      accepted: 2,
      duplicates: 2,
    });
  };
  const { state, counters } = await crawl(
    { sources: [`${origin}/first`], allowPrivate: true, politeness: { robots: false, rate: 'max' } },
    { begun: (at) => (place = at) },
  );
  expect({ state, done: counters.done }).toEqual({ state: 'done', done: 3 });
  expect(paths.sort()).toEqual(['/first', '/second', '/third']);
});

test('what is added at the last moment is not left behind', async () => {
  let place: { store: Store; job: Job } | null = null;
  let isAdded = false;
  const { state, counters } = await crawl(
    { sources: [`${origin}/first`], allowPrivate: true, politeness: { robots: false, rate: 'max' } },
    {
      begun: (at) => (place = at),
      // Between the look at the counters and the end of the run.
      beforeFinish: async () => {
        if (isAdded) return;
        isAdded = true;
        await addToJob(place!.store, place!.job.id, rowsOf('late'), { now });
      },
    },
  );
  expect({ state, done: counters.done, pending: counters.pending }).toEqual({
    state: 'done',
    done: 2,
    pending: 0,
  });
});

test('a job without sources that is kept open ends its run as waiting', async () => {
  const { state } = await crawl({ sources: [], keepOpen: true });
  expect(state).toBe('waiting');
});

test('rows that cannot be used are named with their place, and the others are added', async () => {
  await withStore(async (store) => {
    const { id } = await store.jobs.create({ ...codeOf('x'), name: 'x', now: T0 });
    const rows = [
      { url: 'ftp://a.example/', meta: null },
      ...rowsOf('a'),
      { url: 'row 3', reason: 'no URL' },
      { ...rowsOf('b')[0]!, route: 'nowhere' },
    ];
    const added = await addToJob(store, id, rows, { now });
    expect(added).toMatchObject({ accepted: 1, duplicates: 0, rejected: 3 });
    expect(added.rejects).toMatchObject([
      { index: 0, url: 'ftp://a.example/' },
      { index: 2, url: 'row 3', reason: 'no URL' },
      { index: 3, reason: "unknown route 'nowhere'" },
    ]);
    expect(await store.jobs.counters(id)).toMatchObject({ accepted: 1, rejected: 3 });
  });
});

test('priorities are those of the row, else of the call, else of rules that people gave', async () => {
  await withStore(async (store) => {
    const { id } = await store.jobs.create({ ...codeOf('x'), name: 'x', now: T0 });
    await store.jobs.update(id, { priorities: [{ pattern: '/ruled', priority: 9 }] });
    const [a, b, c] = rowsOf('a', 'b', 'ruled');
    await addToJob(store, id, [{ ...a!, priority: 3 }, b!, c!], { now, priority: 5 });
    const tasks = await collect(store.views.tasks(id));
    expect(tasks.map(({ priority }) => priority)).toEqual([3, 5, 9]);
  });
});

test('many rows are written in parts, and a cancelled job takes none', async () => {
  await withStore(async (store) => {
    const { id } = await store.jobs.create({ ...codeOf('x'), name: 'x', now: T0 });
    async function* rows() {
      for (let row = 0; row < 5_000; row++) yield { url: `https://a.example/${row % 4_500}`, meta: null };
      // What is written is written, whatever becomes of the rest.
      throw new Error('the list broke');
    }
    await expect(addToJob(store, id, rows(), { now })).rejects.toThrow('the list broke');
    expect(await store.jobs.counters(id)).toMatchObject({ accepted: 4_000, pending: 4_000 });
    await store.jobs.update(id, { state: 'cancelled' });
    await expect(addToJob(store, id, rowsOf('a'), { now })).rejects.toThrow('x-1 was cancelled');
  });
});

test('several parts may be under way, and all have ended when one of them failed', async () => {
  await withStore(async (store) => {
    const { id } = await store.jobs.create({ ...codeOf('x'), name: 'x', now: T0 });
    const job = await store.jobs.get(id);
    let begun = 0;
    let ended = 0;
    let most = 0;
    const write = async (tasks: unknown[]) => {
      const part = ++begun;
      most = Math.max(most, begun - ended);
      await new Promise(setImmediate);
      ended++;
      if (part === 3) throw new Error('the disk broke');
      return { accepted: tasks.length, duplicates: 0 };
    };
    const rows = Array.from({ length: 9_000 }, (_, at) => ({ url: `https://a.example/${at}`, meta: null }));
    const added = addRows(job, rows, { priority: 0, ahead: 2, write });
    await expect(added).rejects.toThrow('the disk broke');
    expect(most).toBe(2);
    expect(ended).toBe(begun);
    const fine = await addRows(job, rows.slice(0, 2_001), {
      priority: 0,
      ahead: 2,
      write: async (tasks) => ({ accepted: tasks.length, duplicates: 0 }),
    });
    expect(fine.accepted).toBe(2_001);
  });
});

test('lists share the room for rows that are not written yet: they wait for one another, and all are written', async () => {
  await withStore(async (store) => {
    const { id } = await store.jobs.create({ ...codeOf('x'), name: 'x', now: T0 });
    const job = await store.jobs.get(id);
    const room = new RowRoom({ charsMax: 100_000, keyCharsMax: 60_000 });
    let most = 0;
    const write = async (tasks: unknown[]) => {
      most = Math.max(most, room.chars);
      await new Promise(setImmediate);
      return { accepted: tasks.length, duplicates: 0 };
    };
    const listOf = async (key: string, breaksAt = Number.POSITIVE_INFINITY) => {
      async function* rows() {
        for (let at = 0; at < 1_000; at++) {
          if (at === breaksAt) throw new Error('the client is gone');
          yield { url: `https://a.example/${key}/${at}`, meta: { note: 'x'.repeat(at % 500) } };
        }
      }
      return addRows(job, rows(), { priority: 0, ahead: 4, room: room.of(key), write });
    };
    const keys = ['one', 'one', 'two', 'three', 'one'];
    const broken = listOf('two', 700);
    const added = await Promise.all([
      ...keys.map((key) => listOf(key)),
      expect(broken).rejects.toThrow('the client is gone'),
    ]);
    expect(added.slice(0, keys.length)).toEqual(keys.map(() => expect.objectContaining({ accepted: 1_000 })));
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(100_000);
    expect(room.chars).toBe(0);
  });
});

test('rows with much beside their URL are written in smaller parts', async () => {
  await withStore(async (store) => {
    const { id } = await store.jobs.create({ ...codeOf('x'), name: 'x', now: T0 });
    const sizes: number[] = [];
    const rows = Array.from({ length: 400 }, (_, at) => ({
      url: `https://a.example/${at}`,
      meta: { note: 'x'.repeat(16_000) },
    }));
    await addRows(await store.jobs.get(id), rows, {
      priority: 0,
      ahead: 1,
      write: async (tasks) => {
        sizes.push(tasks.length);
        return { accepted: tasks.length, duplicates: 0 };
      },
    });
    expect(sizes.reduce((sum, size) => sum + size)).toBe(400);
    expect(Math.max(...sizes)).toBeLessThan(200);
  });
});
