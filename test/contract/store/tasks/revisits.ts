import { describe, expect, test } from 'vitest';
import type { TaskChange } from '../../../../src/ports/store.ts';
import {
  change,
  collect,
  enqueue,
  pageOf,
  recordOf,
  T0,
  taskOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

const DAY = 86_400_000;
const PAGE = pageOf({
  bytes: 777,
  sha256: '0f'.repeat(32),
  contentType: 'text/plain',
  route: 'product',
  robotsTags: 'noarchive',
  archive: { offset: 321, length: 99, sha256: 'ab'.repeat(32) },
  etag: '"one"',
  lastModified: 'Tue, 14 Nov 2023 00:00:00 GMT',
});
const ARCHIVE = { key: 'warc/x-0.warc.gz', bytes: 1_000 };
/** What people see of the stored page, whatever later visits were like. */
const STORED = {
  bytes: 777,
  sha256: PAGE.sha256,
  contentType: 'text/plain',
  route: 'product',
  robotsTags: 'noarchive',
  archive: { key: ARCHIVE.key, offset: 321, length: 99 },
};
const LAST_VISIT = {
  etag: PAGE.etag,
  lastModified: PAGE.lastModified,
  sha256: PAGE.sha256,
  archived: { at: traceOf().startedAt, sha256: 'ab'.repeat(32) },
};

/** What the last visit left behind, and what becomes of it. */
export function testRevisits(setup: StoreSetup): void {
  const { add, row, counters, visit, beginPass, reopenTasks, reopen } = setup;

  /** Begins the next pass and visits everything in it. */
  const revisit = async (
    pass: number,
    make: (id: number) => TaskChange,
    settings: Parameters<typeof visit>[1] = {},
  ) => {
    await beginPass(T0 + pass * DAY);
    await reopenTasks(T0 + pass * DAY);
    const startedAt = T0 + pass * DAY + 1;
    return visit(({ id }) => {
      const each = make(id);
      return { ...each, trace: each.trace && { ...each.trace, startedAt } };
    }, settings);
  };

  describe('revisits', () => {
    test('a task is lent with what its last visit left, but not in the first pass', async () => {
      await add(`${A}/1`, `${A}/never`);
      const first = await visit(({ id, url }) =>
        url.endsWith('never') ? change.skipped(id) : change.again(id, null, { page: PAGE }),
      );
      expect(first.get(`${A}/1`)?.lastVisit).toBeNull();
      const retry = await visit(({ id }) => change.fetched(id, { page: PAGE }), { archive: ARCHIVE });
      expect(retry.get(`${A}/1`)?.lastVisit).toBeNull();
      await reopen();
      const second = await revisit(1, (id) =>
        change.fetched(id, { page: pageOf({ sha256: '11'.repeat(32) }) }),
      );
      expect(second.get(`${A}/1`)?.lastVisit).toEqual(LAST_VISIT);
      expect(second.get(`${A}/never`)?.lastVisit).toBeNull();
      const third = await revisit(2, (id) => change.fetched(id));
      expect(third.get(`${A}/1`)?.lastVisit).toEqual({
        etag: null,
        lastModified: null,
        sha256: '11'.repeat(32),
      });
    });

    test('a record has the columns of its row, and says since when its page is gone', async () => {
      const meta = { sku: 'ü-1', '@page': 2 };
      await enqueue(setup.store, setup.job, [taskOf(`${A}/1`, { meta })]);
      const settings = { records: { guardMs: 0, history: true } };
      const say = (n: number) => (id: number) =>
        change.fetched(id, { page: PAGE, records: [recordOf('k', { n })], trace: traceOf() });
      const read = async () => ({
        record: await setup.store.views.record(setup.job.id, 'k'),
        history: await collect(setup.store.views.history(setup.job.id)),
        view: await collect(setup.store.views.query('SELECT gone_at, meta FROM seine_records')),
      });
      await visit(({ id }) => say(1)(id), { archive: ARCHIVE, ...settings });
      await revisit(1, say(2), settings);
      expect((await read()).record).toMatchObject({ data: { n: 2 }, meta: { sku: 'ü-1' }, goneAt: null });
      const gone = (httpStatus: number) => (id: number) =>
        change.dead(id, { code: 'not-found', trace: traceOf({ httpStatus }) });
      await revisit(2, gone(410));
      const goneAt = new Date(T0 + 2 * DAY + 1).toISOString();
      expect(await read()).toMatchObject({
        record: { data: { n: 2 }, goneAt },
        history: [{ data: { n: 1 }, goneAt }],
        view: [{ gone_at: goneAt }],
      });
      const changesOf = (pass: number) => setup.store.views.recordChanges(setup.job.id, pass);
      const none = { created: 0, changed: 0, gone: 0, fields: [] };
      expect(await changesOf(1)).toEqual({ ...none, created: 1 });
      expect(await changesOf(2)).toEqual({ ...none, changed: 1, fields: [{ field: 'n', count: 1 }] });
      expect(await changesOf(3)).toEqual({ ...none, gone: 1 });
      await revisit(3, say(2));
      expect(await changesOf(4)).toEqual(none);
      expect((await read()).record).toMatchObject({ goneAt: null });
      expect(JSON.stringify((await read()).view)).toContain('ü-1');
    });

    test('where intervals adapt, each page has its own, and only what is due is made ready', async () => {
      const adapt = { minMs: DAY, maxMs: 30 * DAY };
      await add(`${A}/still`, `${A}/news`, `${A}/ads`, `${A}/gone`, `${A}/ill`);
      const visited: string[][] = [];
      for (let day = 0; day <= 8; day++) {
        if (day > 0) {
          await beginPass(T0 + day * DAY);
          await reopenTasks(0, 1_000, adapt);
        }
        const trace = traceOf({ startedAt: T0 + day * DAY + 1_000 });
        const data = (n: number) => ({ page: PAGE, trace, records: [recordOf(`k${n}`, { n })] });
        const lent = await visit(
          ({ id, url }) => {
            if (url.endsWith('/gone')) return change.dead(id, { code: 'not-found', trace });
            if (url.endsWith('/ill')) return change.dead(id, { code: 'connect-timeout', trace });
            if (url.endsWith('/news')) return change.fetched(id, data(day));
            // Other bytes, the same records.
            if (url.endsWith('/ads')) return change.fetched(id, data(-1));
            return day === 0 ? change.fetched(id, { page: PAGE, trace }) : change.unchanged(id, { trace });
          },
          { revisits: adapt },
        );
        visited.push([...lent.keys()].map((url) => url.split('/').at(-1)!).sort());
      }
      const all = ['ads', 'gone', 'ill', 'news', 'still'];
      const some = ['ill', 'news'];
      expect(visited).toEqual([all, all, some, all, some, some, some, all, some]);
      expect((await row(`${A}/still`))?.revisitSeconds).toBe((8 * DAY) / 1_000);
      expect((await row(`${A}/news`))?.revisitSeconds).toBe(DAY / 1_000);
      expect((await row(`${A}/ill`))?.revisitSeconds).toBeNull();
      await expectBalance(setup.store, setup.job);
    });

    test('visits that bring no page leave the stored one where it is', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { page: PAGE }), { archive: ARCHIVE });
      const outcomes: [string, TaskChange['to'], (id: number) => TaskChange][] = [
        ['not modified', 'unchanged', (id) => change.unchanged(id)],
        ['gone', 'dead', (id) => change.dead(id)],
        [
          'out of time',
          'dead',
          (id) => change.dead(id, { code: 'connect-timeout', trace: traceOf({ httpStatus: null }) }),
        ],
        ['refused', 'skipped', (id) => change.skipped(id)],
        ['of a type that is not wanted', 'skipped', (id) => change.skipped(id, { trace: traceOf() })],
        ['not modified again', 'unchanged', (id) => change.unchanged(id)],
      ];
      for (const [pass, [, to, make]] of outcomes.entries()) {
        const lent = await revisit(pass + 1, make);
        expect(lent.get(`${A}/1`)?.lastVisit).toEqual(LAST_VISIT);
        expect(await row(`${A}/1`)).toMatchObject({ state: to, ...STORED });
        await reopen();
      }
      expect(await row(`${A}/1`)).toMatchObject({
        httpStatus: 304,
        fetchedAt: new Date(T0 + 6 * DAY + 1).toISOString(),
      });
      expect(await collect(setup.store.views.attempts(setup.job.id))).toHaveLength(6);
      await expectBalance(setup.store, setup.job);
    });

    test('equal bytes keep the stored page, and bring their validators if they have some', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { page: PAGE }), { archive: ARCHIVE });
      const same = { ...PAGE, archive: null, etag: '"two"', lastModified: null };
      await revisit(1, (id) => change.unchanged(id, { page: same, trace: traceOf() }));
      expect(await row(`${A}/1`)).toMatchObject({ state: 'unchanged', httpStatus: 200, ...STORED });
      const none = { ...same, etag: null };
      const lent = await revisit(2, (id) => change.unchanged(id, { page: none, trace: traceOf() }));
      expect(lent.get(`${A}/1`)?.lastVisit).toEqual({
        ...LAST_VISIT,
        etag: '"two"',
        lastModified: null,
      });
      const again = await revisit(3, (id) => change.unchanged(id));
      expect(again.get(`${A}/1`)?.lastVisit).toMatchObject({ etag: '"two"' });
      expect(await row(`${A}/1`)).toMatchObject(STORED);
      expect(await counters()).toMatchObject({ unchanged: 1, done: 0 });
    });

    test('a changed page takes the place of the stored one', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { page: PAGE }), { archive: ARCHIVE });
      await revisit(1, (id) => change.unchanged(id));
      const page = pageOf({ sha256: '22'.repeat(32), bytes: 5, contentType: 'text/html' });
      await revisit(2, (id) => change.fetched(id, { page }));
      expect(await row(`${A}/1`)).toMatchObject({
        sha256: page.sha256,
        bytes: 5,
        archive: null,
        route: null,
      });
      expect(await row(`${A}/1`)).toMatchObject({ contentType: 'text/html', robotsTags: null });
    });

    test('a page that could not be read is kept, and not compared with: it is to be read again', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.dead(id, { code: 'parse-error', page: PAGE }), { archive: ARCHIVE });
      const second = await revisit(1, (id) => change.dead(id));
      expect(second.get(`${A}/1`)?.lastVisit).toBeNull();
      expect(await row(`${A}/1`)).toMatchObject(STORED);
      const third = await revisit(2, (id) => change.fetched(id));
      expect(third.get(`${A}/1`)?.lastVisit).toBeNull();
    });

    test('what moved in between, and failed there, still has its page', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { page: PAGE }), { archive: ARCHIVE });
      await revisit(1, (id) => change.moved(id, `${B}/moved`));
      const there = await visit(({ id }) => change.dead(id));
      expect(there.get(`${B}/moved`)?.lastVisit?.sha256).toBe(PAGE.sha256);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'dead', ...STORED });
      const lent = await revisit(2, (id) => change.unchanged(id));
      expect(lent.get(`${A}/1`)?.lastVisit).toEqual(LAST_VISIT);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'unchanged', host: 'a.example', ...STORED });
      await expectBalance(setup.store, setup.job);
    });

    test('the answer of a redirect is not a page to keep', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.moved(id, `${B}/moved`));
      await visit(({ id }) => change.skipped(id));
      const lent = await revisit(1, (id) => change.dead(id));
      expect(lent.get(`${A}/1`)?.lastVisit).toBeNull();
      expect(await row(`${A}/1`)).toMatchObject({ state: 'dead', sha256: null, bytes: null });
    });

    test('a clock that was set back does not keep a page from changing its own records', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { records: [recordOf('k', { n: 1 })] }));
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      const trace = traceOf({ startedAt: T0 - DAY });
      await visit(({ id }) => change.fetched(id, { trace, records: [recordOf('k', { n: 2 })] }));
      expect(await setup.store.views.record(setup.job.id, 'k')).toMatchObject({ data: { n: 2 } });
    });

    test('an unchanged page confirms its records, not more often than the guard says', async () => {
      await add(`${A}/1`);
      const checkedAt = async () => (await setup.store.views.record(setup.job.id, 'k'))?.checkedAt;
      await visit(({ id }) => change.fetched(id, { page: PAGE, records: [recordOf('k', { n: 1 })] }));
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      const records = { guardMs: DAY, history: false };
      await visit(({ id }) => change.unchanged(id), { now: T0 + DAY, records });
      expect(await checkedAt()).toBe(new Date(T0).toISOString());
      await beginPass(T0 + 2 * DAY);
      await reopenTasks(T0 + 2 * DAY);
      await visit(({ id }) => change.unchanged(id), { now: T0 + 2 * DAY, records });
      expect(await checkedAt()).toBe(new Date(T0 + 2 * DAY).toISOString());
      expect(await setup.store.views.record(setup.job.id, 'k')).toMatchObject({
        data: { n: 1 },
        updatedAt: new Date(T0).toISOString(),
      });
    });

    test('pages with an archive are read back with the place and time of their fetch', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/bad`, `${A}/lost`, `${A}/pending`);
      await visit(
        ({ id, url }) => {
          if (url.endsWith('bad')) return change.dead(id, { code: 'validation', page: PAGE });
          if (url.endsWith('lost')) return change.fetched(id);
          if (url.endsWith('/2')) return change.moved(id, `${B}/moved`);
          return url.endsWith('pending')
            ? change.again(id, T0 + 99 * DAY)
            : change.fetched(id, { page: PAGE });
        },
        { archive: ARCHIVE },
      );
      await visit(({ id }) => change.fetched(id, { page: PAGE }), { archive: { key: 'warc/y', bytes: 1 } });
      const read = async () => {
        const pages = await collect(setup.store.views.pages(setup.job.id));
        return pages.map(({ taskId: _, ...page }) => page);
      };
      const page = (url: string, key = ARCHIVE.key) => ({
        url,
        route: null,
        depth: 0,
        state: 'done',
        failureCode: null,
        archive: { key, offset: 321, length: 99 },
        sha256: PAGE.sha256,
        fetchedAt: T0,
        meta: null,
      });
      const bad = { ...page(`${A}/bad`), state: 'dead', failureCode: 'validation' };
      expect(await read()).toEqual([page(`${A}/1`), page(`${B}/moved`, 'warc/y'), bad]);
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      expect(await read()).toEqual([]);
      await visit(({ id }) => change.unchanged(id, { trace: traceOf({ startedAt: T0 + DAY }) }));
      expect(await read()).toEqual(
        [page(`${A}/1`), page(`${B}/moved`, 'warc/y'), page(`${A}/bad`)].map((each) => ({
          ...each,
          state: 'unchanged',
        })),
      );
    });
  });
}
