import { describe, expect, test } from 'vitest';
import { SeineError } from '../../../../src/core/errors.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  pageOf,
  recordHash,
  recordOf,
  T0,
  taskOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Questions of people, in SQL that every store understands. */
export function testQuery(setup: StoreSetup): void {
  const { add, visit, counters } = setup;
  const ask = (sql: string) => collect(setup.store.views.query(sql));

  describe('query', () => {
    test('tasks and records are there as documented', async () => {
      await enqueue(setup.store, setup.job, [
        taskOf(`${A}/1`, { depth: 2, route: 'asked' }),
        taskOf(`${A}/2`),
      ]);
      await enqueue(setup.store, await createJob(setup.store, 'other'), [taskOf(`${B}/1`)]);
      const page = pageOf({ route: 'product', bytes: 7 });
      await visit(({ id, url }) =>
        url.endsWith('1')
          ? change.fetched(id, {
              page,
              trace: traceOf({ startedAt: T0 + 123 }),
              records: [recordOf('k', { n: 1 })],
            })
          : change.again(id, T0 + 9),
      );
      const task = { job: 'test', run: 1, host: 'a.example' };
      expect(await ask("SELECT * FROM seine_tasks WHERE job = 'test' ORDER BY url")).toMatchObject([
        {
          ...task,
          url: `${A}/1`,
          state: 'done',
          http_status: 200,
          failure_code: null,
          attempts: 1,
          fetched_at: new Date(T0 + 123).toISOString(),
          route: 'product',
          depth: 2,
          content_type: 'text/html',
          bytes: 7,
          sha256: page.sha256,
        },
        {
          ...task,
          url: `${A}/2`,
          state: 'pending',
          http_status: null,
          failure_code: 'reset',
          attempts: 1,
          fetched_at: new Date(T0).toISOString(),
          route: null,
          depth: 0,
          content_type: null,
          bytes: null,
          sha256: null,
        },
      ]);
      expect(await ask('SELECT * FROM seine_records')).toMatchObject([
        {
          job: 'test',
          key: 'k',
          url: `${A}/1`,
          route: 'product',
          data: '{"n":1}',
          hash: recordHash({ n: 1 }),
          created_at: new Date(T0).toISOString(),
          updated_at: new Date(T0).toISOString(),
          checked_at: new Date(T0).toISOString(),
          gone_at: null,
          meta: null,
        },
      ]);
    });

    test('times compare as text, and any SELECT is one', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { records: [recordOf('k', { n: 1 })] }));
      const older = (time: number) =>
        ask(`SELECT url FROM seine_records WHERE checked_at < '${new Date(time).toISOString()}'`);
      expect(await older(T0)).toEqual([]);
      expect(await older(T0 + 1)).toEqual([{ url: `${A}/1` }]);
      for (const sql of [
        "  -- a comment; with an end\n SELECT ';' AS mark /* ; */ ; ",
        "WITH marks AS (SELECT ';' AS mark) SELECT mark FROM marks",
        'select \';\' as "mark"',
      ]) {
        expect(await ask(sql)).toEqual([{ mark: ';' }]);
      }
    });

    test('thousands of rows come once each, in order, while the store is written', async () => {
      const urls = Array.from({ length: 3_500 }, (_, n) => `${A}/${String(n).padStart(4, '0')}`);
      await add(...urls);
      const seen: unknown[] = [];
      for await (const { url } of setup.store.views.query('SELECT url FROM seine_tasks ORDER BY url')) {
        if (seen.length % 1_000 === 0) await add(`${B}/${seen.length}`);
        seen.push(url);
      }
      expect(seen).toEqual(urls);
      for await (const _ of setup.store.views.query('SELECT url FROM seine_tasks')) break;
      expect(await counters()).toMatchObject({ accepted: 3_504 });
    });

    test.each([
      ['a change', "UPDATE tasks SET url = 'x'"],
      ['a deletion', 'DELETE FROM tasks'],
      ['a change behind a WITH', 'WITH x AS (SELECT 1) DELETE FROM tasks'],
      ['two statements', 'SELECT 1; DELETE FROM tasks'],
      ['two statements with a comment between', 'SELECT 1; /* ; */ SELECT 2'],
      ['a setting', 'PRAGMA user_version = 5'],
      ['no SQL', 'hello'],
      ['nothing', ' ; '],
      ['an unknown view', 'SELECT * FROM seine_nothing'],
      ['a wrong column', 'SELECT nothing FROM seine_tasks'],
      ['cookies of another job', 'SELECT stats FROM escalations'],
      ['cookies behind a view', 'SELECT url FROM seine_tasks UNION ALL SELECT stats FROM escalations'],
      ['cookies in a condition', 'SELECT url FROM seine_tasks WHERE exists (SELECT 1 FROM escalations)'],
      [
        'cookies under the name of a view',
        'WITH seine_tasks AS (SELECT * FROM escalations) SELECT * FROM seine_tasks',
      ],
      ['cookies under another name', 'WITH a AS (SELECT stats AS url FROM escalations) SELECT url FROM a'],
      ['a number of cookies', 'SELECT count(*) FROM escalations'],
      ['another column of a table of the views', 'SELECT spec FROM jobs'],
    ])('%s is refused in words', async (_, sql) => {
      await add(`${A}/1`);
      await expect(ask(sql)).rejects.toThrow(SeineError);
      await expectBalance(setup.store, setup.job);
    });

    const ENDLESS =
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) AS url FROM n';

    test('one without end ends when its time is over', async () => {
      const rows = collect(setup.store.views.query(ENDLESS, { timeMs: 500 }));
      await expect(rows).rejects.toThrow(/^the query failed: it took longer than/);
    });

    test('one without end keeps nothing else waiting, and ends when it is stopped', async () => {
      const stop = new AbortController();
      const rows = collect(setup.store.views.query(ENDLESS, { signal: stop.signal }));
      const settled = rows.catch((error: unknown) => error);
      // Work of the store that needs this thread many times.
      for (let n = 0; n < 10; n++) await add(`${A}/${n}`);
      stop.abort(new Error('stopped by the test'));
      expect(await settled).toMatchObject({ message: 'stopped by the test' });
      expect(await counters()).toMatchObject({ accepted: 10 });
    });
  });
}
