import { describe, expect, test } from 'vitest';
import type { QualityDelta } from '../../../../src/core/batch/outcome.ts';
import type { Rewrite } from '../../../../src/ports/store.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  pageOf,
  recordOf,
  settlementOf,
  T0,
  tasksOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { HOSTILE_NAMES, objectWith } from '../../../support/hostile-names.ts';
import { A, expectBalance, type StoreSetup } from '../store-setup.ts';

const DAY = 86_400_000;
const iso = (time: number) => new Date(time).toISOString();
const quality = (
  route: string,
  records: number,
  filled: Record<string, number>,
  invalid = 0,
): QualityDelta => ({
  route,
  records,
  invalid,
  filled,
});

/** What today's code makes of pages that are there already, and how good it is. */
export function testRewrite(setup: StoreSetup): void {
  const { add, row, counters, visit, beginPass, reopenTasks, reopen, settle } = setup;
  const keys = async () =>
    (await collect(setup.store.views.records(setup.job.id))).map(({ key }) => key).sort();
  const rewrite = (tasks: Rewrite['tasks'], more: Partial<Rewrite> = {}) =>
    setup.store.views.rewrite(setup.job.id, {
      now: T0 + 50,
      history: false,
      quality: [],
      first: true,
      tasks,
      ...more,
    });
  const made = (taskId: number, ...records: Rewrite['tasks'][number]['records']) => ({
    taskId,
    at: T0,
    records,
    to: 'done' as const,
    code: null,
    detail: null,
  });
  const unreadable = (taskId: number, code: 'parse-error' | 'validation') => ({
    ...made(taskId),
    to: 'dead' as const,
    code,
    detail: 'no title',
  });

  describe('rewrite', () => {
    test('records that a task wrote are replaced, those that it makes no more are gone', async () => {
      await add(`${A}/1`, `${A}/2`);
      const lent = await visit(({ id, url }) =>
        change.fetched(id, {
          records: url.endsWith('1')
            ? [recordOf('a', { n: 1 }), recordOf('b', { n: 1 }), recordOf('same', { n: 1 })]
            : [recordOf('c', { n: 1 })],
        }),
      );
      const first = lent.get(`${A}/1`)!.id;
      await rewrite([made(first, recordOf('a', { n: 2 }), recordOf('same', { n: 1 }), recordOf('d', {}))], {
        history: true,
      });
      expect(await keys()).toEqual(['a', 'c', 'd', 'same']);
      const record = (key: string) => setup.store.views.record(setup.job.id, key);
      expect(await record('a')).toMatchObject({
        data: { n: 2 },
        createdAt: iso(T0),
        updatedAt: iso(T0 + 50),
      });
      expect(await record('same')).toMatchObject({ updatedAt: iso(T0), checkedAt: iso(T0 + 50) });
      expect(await counters()).toMatchObject({ records: 4, done: 2 });
      const versions = await collect(setup.store.views.history(setup.job.id));
      expect(versions.map(({ key }) => key)).toEqual(['a', 'b']);
      await expectBalance(setup.store, setup.job);
      // The same once more changes nothing.
      await rewrite([made(first, recordOf('a', { n: 2 }), recordOf('same', { n: 1 }), recordOf('d', {}))]);
      expect(await keys()).toEqual(['a', 'c', 'd', 'same']);
      expect(await counters()).toMatchObject({ records: 4 });
      await reopen();
      await expectBalance(setup.store, setup.job);
    });

    test('what a later run says of a key is not taken back', async () => {
      await add(`${A}/1`);
      const lent = await visit(({ id }) => change.fetched(id, { records: [recordOf('k', { n: 1 })] }));
      const older = lent.get(`${A}/1`)!.id;
      const second = await createJob(setup.store);
      await enqueue(setup.store, second, tasksOf(`${A}/1`));
      const { id, tasks } = await leaseOne(setup.store, second);
      const records = [recordOf('k', { n: 'later' })];
      const trace = traceOf({ startedAt: T0 + 9 });
      await setup.store.frontier.settle(
        settlementOf(second, id, [change.fetched(tasks[0]!.id, { records, trace })]),
      );
      await rewrite([made(older, recordOf('k', { n: 5 }))]);
      expect(await setup.store.views.record(setup.job.id, 'k')).toMatchObject({ data: { n: 'later' } });
      await rewrite([made(older)]);
      expect(await keys()).toEqual(['k']);
    });

    test('a verdict of the code is lifted or given, with the counters', async () => {
      const names = ['lifted', 'blocked', 'broken', 'other', 'gone', 'skipped', 'pending'];
      await add(...names.map((name) => `${A}/${name}`));
      const lent = await visit(({ id, url }) => {
        if (url.endsWith('lifted')) return change.dead(id, { code: 'parse-error', page: pageOf() });
        if (url.endsWith('blocked')) return change.dead(id, { code: 'soft-block', page: pageOf() });
        if (url.endsWith('other')) return change.dead(id, { code: 'validation', page: pageOf() });
        if (url.endsWith('gone')) return change.dead(id);
        if (url.endsWith('skipped')) return change.skipped(id);
        return url.endsWith('pending') ? change.again(id, null) : change.fetched(id);
      });
      const id = (name: string) => lent.get(`${A}/${name}`)!.id;
      await rewrite([
        made(id('lifted'), recordOf('k', {})),
        made(id('blocked'), recordOf('l', {})),
        unreadable(id('broken'), 'parse-error'),
        unreadable(id('other'), 'parse-error'),
        made(id('gone'), recordOf('old', {})),
        unreadable(id('skipped'), 'validation'),
        unreadable(id('pending'), 'validation'),
        made(99_999, recordOf('nobody', {})),
      ]);
      const done = { state: 'done', failureCode: null, failureDetail: null };
      expect(await row(`${A}/lifted`)).toMatchObject(done);
      expect(await row(`${A}/blocked`)).toMatchObject(done);
      const dead = { state: 'dead', failureCode: 'parse-error', failureDetail: 'no title' };
      expect(await row(`${A}/broken`)).toMatchObject(dead);
      expect(await row(`${A}/other`)).toMatchObject(dead);
      // What the site said is not for the code to say.
      expect(await row(`${A}/gone`)).toMatchObject({ state: 'dead', failureCode: 'not-found' });
      expect(await row(`${A}/skipped`)).toMatchObject({ state: 'skipped', failureCode: 'robots' });
      expect(await row(`${A}/pending`)).toMatchObject({ state: 'pending', failureCode: 'reset' });
      expect(await counters()).toMatchObject({ done: 2, dead: 3, skipped: 1, pending: 1, records: 3 });
      expect(await keys()).toEqual(['k', 'l', 'old']);
      await expectBalance(setup.store, setup.job);
      // A page that cannot be read is not what the next visit is compared with; a lifted one may be.
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      const again = await visit(({ id: each }) => change.unchanged(each));
      expect(again.get(`${A}/broken`)?.lastVisit).toBeNull();
      expect(again.get(`${A}/lifted`)?.lastVisit).not.toBeNull();
    });

    test('a task of another job is left alone', async () => {
      await add(`${A}/1`);
      const lent = await visit(({ id }) => change.fetched(id, { records: [recordOf('k', {})] }));
      const other = await createJob(setup.store, 'other');
      const tasks = [made(lent.get(`${A}/1`)!.id, recordOf('stolen', {}))];
      await setup.store.views.rewrite(other.id, { now: T0, history: false, quality: [], first: true, tasks });
      expect(await keys()).toEqual(['k']);
      expect(await collect(setup.store.views.records(other.id))).toEqual([]);
      await expectBalance(setup.store, setup.job, other);
    });
  });

  describe('quality', () => {
    const read = (pass: number) => setup.store.views.quality(setup.job.id, pass);

    test('adds up by route and field, for each pass by itself', async () => {
      expect(await read(1)).toEqual([]);
      await add(`${A}/1`, `${A}/2`);
      const odd = JSON.parse('{"__proto__": 1, "": 2}') as Record<string, number>;
      await visit(({ id }) => change.fetched(id), {
        quality: [
          quality('product', 2, { title: 2, price: 1 }),
          { ...quality('list', 0, {}, 1), blank: 3 },
          { ...quality('list', 0, {}), blank: 1 },
        ],
      });
      await reopen();
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      const batch = await leaseOne(setup.store, setup.job, { count: 1 });
      await settle(batch.id, [change.fetched(batch.tasks[0]!.id)], { quality: [quality('product', 1, odd)] });
      await visit(({ id }) => change.fetched(id), { quality: [quality('product', 1, { title: 1 })] });
      expect(await read(1)).toEqual([
        { pass: 1, route: 'list', records: 0, invalid: 1, blank: 4, filled: {} },
        { pass: 1, route: 'product', records: 2, invalid: 0, filled: { title: 2, price: 1 } },
      ]);
      const [only] = await read(2);
      expect(only).toMatchObject({ pass: 2, route: 'product', records: 2 });
      expect(Object.entries(only!.filled).sort()).toEqual([
        ['', 2],
        ['__proto__', 1],
        ['title', 1],
      ]);
      expect(await setup.store.views.quality((await createJob(setup.store, 'other')).id, 1)).toEqual([]);
    });

    test('a field may have any name', async () => {
      await add(`${A}/1`, `${A}/2`);
      const filled = objectWith(1);
      for (let i = 0; i < 2; i++) {
        const batch = await leaseOne(setup.store, setup.job, { count: 1 });
        await settle(batch.id, [change.fetched(batch.tasks[0]!.id)], {
          quality: [quality('product', 1, filled)],
        });
      }
      const [only] = await read(1);
      expect(only).toMatchObject({ records: 2, invalid: 0 });
      expect(Object.keys(only!.filled)).toHaveLength(HOSTILE_NAMES.length);
      expect(new Set(Object.values(only!.filled))).toEqual(new Set([2]));
      for (const name of HOSTILE_NAMES.filter((text) => !text.includes('\0') && text.isWellFormed()))
        expect(Object.hasOwn(only!.filled, name)).toBe(true);
    });

    test('a report that is refused, or comes twice, adds nothing', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const part = settlementOf(setup.job, id, [change.fetched(tasks[0]!.id)], {
        final: false,
        quality: [quality('p', 1, { a: 1 })],
      });
      for (let times = 0; times < 3; times++) await setup.store.frontier.settle(part);
      await settle(id, []);
      await setup.store.frontier.settle(part);
      expect(await read(1)).toMatchObject([{ records: 1, filled: { a: 1 } }]);
    });

    test('field names without end are not all counted', async () => {
      await add(`${A}/1`);
      const filled = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`sku-${n}`, 1]));
      await visit(({ id }) => change.fetched(id), { quality: [quality('p', 2_000, filled)] });
      const [only] = await read(1);
      expect(only?.records).toBe(2_000);
      expect(Object.keys(only!.filled)).toHaveLength(500);
    });

    test('is replaced by the first piece of a rewrite, and added to by the others', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id), {
        quality: [quality('p', 9, { old: 9 }), quality('q', 1, {})],
      });
      await beginPass(T0 + DAY);
      await add(`${A}/2`);
      await visit(({ id }) => change.fetched(id), { quality: [quality('p', 8, { old: 8 })] });
      await rewrite([], { quality: [quality('p', 1, { title: 1 })], first: true });
      await rewrite([], { quality: [quality('p', 2, { title: 1 })], first: false });
      expect(await read(2)).toEqual([{ pass: 2, route: 'p', records: 3, invalid: 0, filled: { title: 2 } }]);
      expect(await read(1)).toHaveLength(2);
    });

    test('the newest pass that has any is known, also when later ones have none', async () => {
      const last = () => setup.store.views.lastQualityPass(setup.job.id);
      expect(await last()).toBeNull();
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id), { quality: [quality('p', 1, { a: 1 })] });
      expect(await last()).toBe(1);
      await beginPass(T0 + DAY);
      await beginPass(T0 + 2 * DAY);
      expect(await last()).toBe(1);
      await add(`${A}/2`);
      await visit(({ id }) => change.fetched(id), { quality: [quality('p', 1, { a: 1 })] });
      expect(await last()).toBe(3);
    });
  });

  describe('media of pages that are read again', () => {
    const referrers = async () =>
      Object.fromEntries(
        (await collect(setup.store.views.media(setup.job.id))).map((media) => [media.url, media.referrers]),
      );

    test('are shown by those pages, in the place of those they showed before', async () => {
      const [one, two] = [`${A}/1.png`, `${A}/2.png`];
      await add(`${A}/page`, one, two);
      const lent = await visit(({ id, url }) =>
        change.fetched(id, {
          page: pageOf(
            url.endsWith('.png') ? { media: { key: url, md5: 'ab'.repeat(16), member: null } } : {},
          ),
          shows: url.endsWith('.png') ? [] : [one],
        }),
      );
      expect(await referrers()).toEqual({ [one]: [`${A}/page`], [two]: [] });
      const taskId = lent.get(`${A}/page`)!.id;
      await rewrite([], { shown: [{ taskId, urls: [two, `${A}/unknown.png`] }] });
      expect(await referrers()).toEqual({ [one]: [], [two]: [`${A}/page`] });
      await rewrite([], { shown: [] });
      expect(await referrers()).toEqual({ [one]: [], [two]: [`${A}/page`] });
    });
  });
}
