import { describe, expect, test } from 'vitest';
import type { RecordDraft } from '../../../../src/core/batch/outcome.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import type { Job } from '../../../../src/ports/store.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  recordHash,
  recordOf,
  settlementOf,
  T0,
  tasksOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, expectBalance, type StoreSetup } from '../store-setup.ts';

const iso = (time: number) => new Date(time).toISOString();

/** Records: by name and key, merged, guarded by the time of their fetch. */
export function testRecords(setup: StoreSetup): void {
  const { reopen } = setup;
  let pages = 0;

  /** One more page of a job says this. */
  const say = async (
    records: RecordDraft[],
    when: { now: number; fetchedAt?: number; guardMs?: number; history?: boolean },
    job: Job = setup.job,
  ) => {
    const { now, fetchedAt = now, guardMs = 0, history = false } = when;
    await enqueue(setup.store, job, tasksOf(`${A}/${pages++}`));
    const { id, tasks } = await leaseOne(setup.store, job);
    const trace = traceOf({ startedAt: fetchedAt });
    const taskId = tasks[0]!.id;
    await setup.store.frontier.settle(
      settlementOf(job, id, [change.fetched(taskId, { records, trace })], {
        now,
        records: { guardMs, history },
      }),
    );
    return taskId;
  };
  const read = async (key = 'k', job: Job = setup.job) => setup.store.views.record(job.id, key);

  describe('records', () => {
    test('are found by key, or not at all', async () => {
      await say([recordOf('k', { n: 1 }), recordOf('', { empty: true })], { now: T0 });
      expect(await read()).toMatchObject({ key: 'k', data: { n: 1 }, hash: recordHash({ n: 1 }) });
      expect(await read('')).toMatchObject({ data: { empty: true } });
      expect(await read('K')).toBeNull();
      expect(await collect(setup.store.views.records(setup.job.id))).toHaveLength(2);
      await expectBalance(setup.store, setup.job);
    });

    test('equal data is not rewritten, and confirmed only when the guard is over', async () => {
      await say([recordOf('k', { a: 1, b: 2 })], { now: T0 });
      const first = await read();
      await say([recordOf('k', { b: 2, a: 1 })], { now: T0 + 100, guardMs: 100 });
      expect(await read()).toEqual(first);
      await say([recordOf('k', { b: 2, a: 1 })], { now: T0 + 101, guardMs: 100 });
      expect(await read()).toEqual({ ...first, checkedAt: iso(T0 + 101) });
      await say([recordOf('k', { a: 1, b: 3 })], { now: T0 + 102, guardMs: 100 });
      expect(await read()).toMatchObject({
        data: { a: 1, b: 3 },
        createdAt: iso(T0),
        updatedAt: iso(T0 + 102),
        checkedAt: iso(T0 + 102),
      });
      await reopen();
      expect((await setup.store.jobs.counters(setup.job.id)).records).toBe(1);
    });

    test('what was fetched earlier never overwrites, in whatever order reports come', async () => {
      await say([recordOf('k', { price: 2 })], { now: T0 + 1, fetchedAt: T0 });
      await say([recordOf('k', { price: 1 })], { now: T0 + 2, fetchedAt: T0 - 1 });
      expect(await read()).toMatchObject({ data: { price: 2 }, updatedAt: iso(T0 + 1) });
      await say([recordOf('k', { price: 2 })], { now: T0 + 3, fetchedAt: T0 - 1 });
      expect(await read()).toMatchObject({ checkedAt: iso(T0 + 1) });
      await say([recordOf('k', { price: 3 })], { now: T0 + 4, fetchedAt: T0 });
      expect(await read()).toMatchObject({ data: { price: 3 } });
    });

    test('a confirmation counts as a fetch', async () => {
      await say([recordOf('k', { price: 2 })], { now: T0, fetchedAt: T0 });
      await say([recordOf('k', { price: 2 })], { now: T0 + 20, fetchedAt: T0 + 10 });
      await say([recordOf('k', { price: 1 })], { now: T0 + 30, fetchedAt: T0 + 5 });
      expect(await read()).toMatchObject({ data: { price: 2 } });
    });

    test('with a merge, fields with a value are put over the others, and the rest stays', async () => {
      await say([recordOf('k', { name: 'Lamp', price: 5, stock: null }, true)], { now: T0 });
      await say([recordOf('k', { price: 6, stock: 3, name: null }, true)], { now: T0 + 1 });
      const data = { name: 'Lamp', price: 6, stock: 3 };
      expect(await read()).toMatchObject({ data, hash: recordHash(data), updatedAt: iso(T0 + 1) });
      // Nothing new in it: as if nothing had been written.
      await say([recordOf('k', { stock: 3 }, true)], { now: T0 + 2, guardMs: 10 });
      expect(await read()).toMatchObject({ data, updatedAt: iso(T0 + 1), checkedAt: iso(T0 + 1) });
      await say([recordOf('k', { only: true })], { now: T0 + 3 });
      expect(await read()).toMatchObject({ data: { only: true } });
      await expectBalance(setup.store, setup.job);
    });

    test('a late merge only fills what has no value', async () => {
      await say([recordOf('k', { price: 5, stock: null }, true)], { now: T0, fetchedAt: T0 });
      await say([recordOf('k', { price: 4, stock: 9, colour: 'red' }, true)], {
        now: T0 + 1,
        fetchedAt: T0 - 5,
      });
      const data = { price: 5, stock: 9, colour: 'red' };
      expect(await read()).toMatchObject({ data, hash: recordHash(data) });
      // The time of the record is still that of the later fetch.
      await say([recordOf('k', { price: 3 }, true)], { now: T0 + 2, fetchedAt: T0 - 1 });
      expect(await read()).toMatchObject({ data });
    });

    test('no merge makes a record larger than any may be', async () => {
      const large = 'x'.repeat(LIMITS.recordBytesMax / 2);
      await say([recordOf('k', { a: large }, true)], { now: T0 });
      await say([recordOf('k', { b: large }, true)], { now: T0 + 1 });
      expect(Object.keys((await read())!.data)).toEqual(['a']);
      await say([recordOf('k', { c: 'small' }, true)], { now: T0 + 2 });
      expect(Object.keys((await read())!.data)).toEqual(['a', 'c']);
    });

    test('merged fields may have any name', async () => {
      const odd = JSON.parse('{"__proto__": 1, "constructor": 2, "toString": null}') as object;
      await say([recordOf('k', { a: 1 }, true)], { now: T0 });
      await say([recordOf('k', odd, true)], { now: T0 + 1 });
      const record = await read();
      expect(Object.entries(record!.data).sort()).toEqual([
        ['__proto__', 1],
        ['a', 1],
        ['constructor', 2],
      ]);
    });

    test('several records of one page with one key are taken in their order', async () => {
      const parts = [
        recordOf('k', { a: 1 }, true),
        recordOf('k', { b: 2 }, true),
        recordOf('k', { a: 3 }, true),
      ];
      await say(parts, { now: T0 });
      expect(await read()).toMatchObject({ data: { a: 3, b: 2 } });
      expect((await setup.store.jobs.counters(setup.job.id)).records).toBe(1);
    });

    test('belong to the name of the job, over all its runs', async () => {
      await say([recordOf('k', { n: 1 }), recordOf('old', { n: 1 })], { now: T0 });
      const second = await createJob(setup.store);
      const other = await createJob(setup.store, 'other');
      await say([recordOf('k', { n: 2 }), recordOf('new', { n: 2 })], { now: T0 + 5 }, second);
      await say([recordOf('old', { n: 1 })], { now: T0 + 6 }, second);
      await say([recordOf('k', { n: 'mine' })], { now: T0 + 7 }, other);
      const keys = async (job: Job, ownOnly = false) => {
        const rows = await collect(setup.store.views.records(job.id, { ownOnly }));
        return rows.map(({ key, data }) => `${key}=${data.n}`).sort();
      };
      for (const job of [setup.job, second]) expect(await keys(job)).toEqual(['k=2', 'new=2', 'old=1']);
      expect(await keys(setup.job, true)).toEqual(['old=1']);
      expect(await keys(second, true)).toEqual(['k=2', 'new=2']);
      expect(await keys(other)).toEqual(['k=mine']);
      expect(await read('k', setup.job)).toMatchObject({ createdAt: iso(T0), updatedAt: iso(T0 + 5) });
      // Each run counts what it made or changed, each key once.
      await say([recordOf('k', { n: 3 })], { now: T0 + 8 }, second);
      expect((await setup.store.jobs.counters(setup.job.id)).records).toBe(2);
      expect((await setup.store.jobs.counters(second.id)).records).toBe(2);
    });

    test('are found by the task that wrote their data last', async () => {
      const all = ['a', 'b', 'c'].map((key) => recordOf(key, { n: 1 }));
      const first = await say(all, { now: T0 });
      const second = await say([recordOf('b', { n: 2 }), recordOf('c', { n: 1 })], { now: T0 + 1 });
      const keys = async (taskId: number) =>
        (await setup.store.views.recordsOf(taskId)).map(({ key }) => key).sort();
      expect(await keys(first)).toEqual(['a', 'c']);
      expect(await keys(second)).toEqual(['b']);
      expect(await keys(99_999)).toEqual([]);
    });

    test('former states are kept where the job wants them, oldest first', async () => {
      const history = true;
      await say([recordOf('k', { n: 1 }), recordOf('j', { n: 9 })], { now: T0, history });
      await say([recordOf('k', { n: 1 })], { now: T0 + 1, history });
      await say([recordOf('k', { n: 2 }), recordOf('j', { n: 8 })], { now: T0 + 2, history });
      await say([recordOf('k', { n: 3 })], { now: T0 + 3, history });
      await say([recordOf('k', { n: 4 })], { now: T0 + 4 });
      await reopen();
      const rows = await collect(setup.store.views.history(setup.job.id));
      expect(rows.filter(({ key }) => key === 'k')).toEqual([
        {
          key: 'k',
          url: expect.stringContaining(A),
          data: { n: 1 },
          hash: recordHash({ n: 1 }),
          from: iso(T0),
          until: iso(T0 + 2),
          goneAt: null,
        },
        expect.objectContaining({ data: { n: 2 }, from: iso(T0 + 2), until: iso(T0 + 3) }),
      ]);
      expect(rows).toHaveLength(3);
      const late = await collect(setup.store.views.history(setup.job.id, { since: T0 + 3 }));
      expect(late.map(({ data }) => data)).toEqual([{ n: 2 }]);
      expect(await collect(setup.store.views.history((await createJob(setup.store, 'other')).id))).toEqual(
        [],
      );
    });
  });
}
