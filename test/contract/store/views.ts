import { describe, expect, test } from 'vitest';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  recordOf,
  settlementOf,
  tasksOf,
} from '../../support/fixtures.ts';
import { A, B, expectBooks, type StoreDesk } from './store-desk.ts';

/** What people read. */
export function testViews(desk: StoreDesk): void {
  const { add, row } = desk;

  describe('views', () => {
    test('two jobs that grow in turn are read apart, in the order of their tasks', async () => {
      const other = await createJob(desk.store, 'other');
      const urls = (which: string, from: number) =>
        Array.from({ length: 700 }, (_, n) => `https://${which}.example/${from + n}`);
      for (let from = 0; from < 2_100; from += 700) {
        await enqueue(desk.store, other, tasksOf(...urls('o', from)));
        await add(...urls('t', from));
      }
      const rows = await collect(desk.store.views.tasks(desk.job.id));
      expect(rows.map((each) => each.url)).toEqual(
        Array.from({ length: 2_100 }, (_, n) => `https://t.example/${n}`),
      );
      expect(await collect(desk.store.views.tasks(other.id))).toHaveLength(2_100);

      for (const each of [desk.job, other]) {
        const { id, tasks } = await leaseOne(desk.store, each, { count: 1_500 });
        const changes = tasks.map((task) =>
          change.fetched(task.id, {
            records: [recordOf(`${task.url}#0`, { u: task.url }), recordOf(task.url, {})],
          }),
        );
        await desk.store.frontier.settle(settlementOf(each, id, changes));
      }
      for (const [each, host] of [
        [desk.job, 't'],
        [other, 'o'],
      ] as const) {
        const records = await collect(desk.store.views.records(each.id));
        expect(records).toHaveLength(3_000);
        expect(new Set(records.map((record) => record.key)).size).toBe(3_000);
        expect(records.every((record) => record.url.startsWith(`https://${host}.`))).toBe(true);
        const attempts = await collect(desk.store.views.attempts(each.id));
        expect(attempts).toHaveLength(1_500);
        expect(attempts.every((attempt) => attempt.url.startsWith(`https://${host}.`))).toBe(true);
      }
      await expectBooks(desk.store, desk.job, other);
    });

    test('a job without tasks has empty views', async () => {
      for (const rows of [
        desk.store.views.tasks(desk.job.id),
        desk.store.views.records(desk.job.id),
        desk.store.views.attempts(desk.job.id),
      ]) {
        expect(await collect<unknown>(rows)).toEqual([]);
      }
      expect(await desk.store.views.tallies(desk.job.id)).toEqual([]);
      expect(await row(`${A}/1`)).toBeNull();
    });

    test('a view can be left early and the store used meanwhile', async () => {
      await add(...Array.from({ length: 2_500 }, (_, n) => `${A}/${n}`));
      const seen: string[] = [];
      for await (const each of desk.store.views.tasks(desk.job.id)) {
        seen.push(each.url);
        if (seen.length === 1_200) await add(`${B}/meanwhile`);
        if (seen.length === 1_300) break;
      }
      expect(new Set(seen).size).toBe(1_300);
      await expectBooks(desk.store, desk.job);
    });
  });
}
