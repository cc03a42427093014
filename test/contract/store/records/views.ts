import { describe, expect, test } from 'vitest';
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
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** What people read. */
export function testViews(setup: StoreSetup): void {
  const { add, row } = setup;

  describe('views', () => {
    test('two jobs that grow in turn are read apart, in the order of their tasks', async () => {
      const other = await createJob(setup.store, 'other');
      const urls = (which: string, from: number) =>
        Array.from({ length: 700 }, (_, n) => `https://${which}.example/${from + n}`);
      for (let from = 0; from < 2_100; from += 700) {
        await enqueue(setup.store, other, tasksOf(...urls('o', from)));
        await add(...urls('t', from));
      }
      const rows = await collect(setup.store.views.tasks(setup.job.id));
      expect(rows.map((each) => each.url)).toEqual(
        Array.from({ length: 2_100 }, (_, n) => `https://t.example/${n}`),
      );
      expect(await collect(setup.store.views.tasks(other.id))).toHaveLength(2_100);

      for (const each of [setup.job, other]) {
        const { id, tasks } = await leaseOne(setup.store, each, { count: 1_500 });
        const changes = tasks.map((task) =>
          change.fetched(task.id, {
            records: [recordOf(`${task.url}#0`, { u: task.url }), recordOf(task.url, {})],
          }),
        );
        await setup.store.frontier.settle(settlementOf(each, id, changes));
      }
      for (const [each, host] of [
        [setup.job, 't'],
        [other, 'o'],
      ] as const) {
        const records = await collect(setup.store.views.records(each.id));
        expect(records).toHaveLength(3_000);
        expect(new Set(records.map((record) => record.key)).size).toBe(3_000);
        expect(records.every((record) => record.url.startsWith(`https://${host}.`))).toBe(true);
        const attempts = await collect(setup.store.views.attempts(each.id));
        expect(attempts).toHaveLength(1_500);
        expect(attempts.every((attempt) => attempt.url.startsWith(`https://${host}.`))).toBe(true);
      }
      await expectBalance(setup.store, setup.job, other);
    });

    test('what changed since a time can be asked for by itself', async () => {
      const since = async (view: 'tasks' | 'records' | 'attempts' | 'media', time: number) => {
        const rows = collect<{ url: string }>(setup.store.views[view](setup.job.id, { since: time }));
        return (await rows).map(({ url }) => url.slice(A.length));
      };
      await add(`${A}/never`, `${A}/1`, `${A}/2`);
      const skip = await leaseOne(setup.store, setup.job, { count: 1 });
      await setup.settle(skip.id, [change.skipped(skip.tasks[0]!.id)]);
      for (const now of [T0 + 10, T0 + 20]) {
        const { id, tasks: lent } = await leaseOne(setup.store, setup.job, { count: 1 });
        const page = pageOf({ media: { key: `media/${now}`, md5: 'ab'.repeat(16), member: null } });
        const done = change.fetched(lent[0]!.id, {
          page,
          records: [recordOf(lent[0]!.url, {})],
          trace: traceOf({ startedAt: now }),
        });
        await setup.settle(id, [done], { now });
      }
      for (const view of ['tasks', 'records', 'attempts', 'media'] as const) {
        expect(await since(view, T0 + 10)).toEqual(['/1', '/2']);
        expect(await since(view, T0 + 11)).toEqual(['/2']);
        expect(await since(view, T0 + 20)).toEqual(['/2']);
        expect(await since(view, T0 + 21)).toEqual([]);
      }
      expect(await since('tasks', 0)).toEqual(['/1', '/2']);
    });

    test('a job without tasks has empty views', async () => {
      for (const rows of [
        setup.store.views.tasks(setup.job.id),
        setup.store.views.records(setup.job.id),
        setup.store.views.attempts(setup.job.id),
        setup.store.views.history(setup.job.id),
        setup.store.views.media(setup.job.id),
        setup.store.views.pages(setup.job.id),
      ]) {
        expect(await collect<unknown>(rows)).toEqual([]);
      }
      expect(await setup.store.views.tallies(setup.job.id)).toEqual([]);
      expect(await row(`${A}/1`)).toBeNull();
    });

    test('a view can be left early and the store used meanwhile', async () => {
      await add(...Array.from({ length: 2_500 }, (_, n) => `${A}/${n}`));
      const seen: string[] = [];
      for await (const each of setup.store.views.tasks(setup.job.id)) {
        seen.push(each.url);
        if (seen.length === 1_200) await add(`${B}/meanwhile`);
        if (seen.length === 1_300) break;
      }
      expect(new Set(seen).size).toBe(1_300);
      await expectBalance(setup.store, setup.job);
    });
  });
}
