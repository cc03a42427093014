import { describe, expect, test } from 'vitest';
import { createJob, T0, tasksOf } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

/** Lists that are read page after page, and tasks that are fetched once more. */
export function testSteps(setup: StoreSetup): void {
  const add = (jobId: number, ...urls: string[]) =>
    setup.store.frontier.enqueue(jobId, tasksOf(...urls), {
      now: T0,
      perTemplateMax: null,
      source: null,
      added: { rejected: 0 },
    });

  describe('steps', () => {
    test('tasks of a job come in order, by filter, and never those of others', async () => {
      const { id } = await createJob(setup.store, 'one');
      const other = await createJob(setup.store, 'other');
      await add(id, `${A}/1`, `${A}/2`);
      await add(other.id, `${A}/3`);
      await add(id, `${A}/4`);
      const { views } = setup.store;
      const first = await views.taskStep(id, { after: 0, limit: 2 });
      expect(first.rows.map(({ url }) => url)).toEqual([`${A}/1`, `${A}/2`]);
      expect(first.isEnd).toBe(false);
      const second = await views.taskStep(id, { after: first.after, limit: 2 });
      expect(second.rows.map(({ url }) => url)).toEqual([`${A}/4`]);
      expect(second.isEnd).toBe(true);
      const filtered = await views.taskStep(id, {
        after: 0,
        limit: 9,
        states: ['pending'],
        host: 'a.example',
        urlContains: '/2',
      });
      expect(filtered.rows.map(({ url }) => url)).toEqual([`${A}/2`]);
      expect((await views.taskStep(id, { after: 0, limit: 9, states: ['dead'] })).rows).toEqual([]);
      const taskId = await views.taskId(id, `${A}/4`);
      expect(await views.numberedTask(taskId!)).toMatchObject({ id: taskId, url: `${A}/4` });
      expect(await views.taskId(id, `${A}/3`)).toBeNull();
    });

    test('are read over connections of their own, which see what was written before', async () => {
      const { store } = setup;
      const { id } = await createJob(store, 'beside');
      await add(id, `${A}/1`, `${A}/2`);
      const reads = store.openReads?.();
      if (!reads) throw new Error('no reads beside the work');
      try {
        const [rows, counters, jobs, hosts] = await Promise.all([
          reads.views.taskStep(id, { after: 0, limit: 9, urlContains: '/2' }),
          reads.jobs.counters(id),
          reads.jobs.listBefore({ before: Number.MAX_SAFE_INTEGER, limit: 1 }),
          reads.hosts.listStep(id, { after: '', limit: 9 }),
        ]);
        expect(rows.rows.map(({ url }) => url)).toEqual([`${A}/2`]);
        expect(counters).toMatchObject({ accepted: 2, pending: 2 });
        expect(jobs.map(({ name }) => name)).toEqual(['beside']);
        expect(hosts).toMatchObject([{ host: 'a.example', ready: 2 }]);
        expect(await reads.jobs.byId(999_999)).toBeNull();
        await expect(reads.jobs.get(999_999)).rejects.toThrow('no job 999999');
        await add(id, `${A}/3`);
        expect(await reads.jobs.counters(id)).toMatchObject({ accepted: 3 });
      } finally {
        await reads.close();
      }
    });

    test('jobs come newest first, of one owner or of all', async () => {
      const one = await createJob(setup.store, 'one');
      const two = await createJob(setup.store, 'two');
      const ids = async (before: number, owner?: string) =>
        (await setup.store.jobs.listBefore({ before, limit: 2, ...(owner ? { owner } : {}) })).map(
          ({ id }) => id,
        );
      expect(await ids(Number.MAX_SAFE_INTEGER)).toEqual([two.id, one.id]);
      expect(await ids(two.id)).toContain(one.id);
      expect(await ids(Number.MAX_SAFE_INTEGER, 'key-1')).toEqual([]);
      expect(await setup.store.jobs.byId(one.id)).toMatchObject({ name: 'one' });
      expect(await setup.store.jobs.byId(999_999)).toBeNull();
    });

    test('a finished task is fetched once more, and its job runs; one that is not finished stays as it is', async () => {
      const { id } = await createJob(setup.store, 'again');
      await add(id, `${A}/1`);
      const taskId = (await setup.store.views.taskId(id, `${A}/1`))!;
      expect(await setup.store.frontier.revisit(id, taskId)).toBe(false);
      await setup.store.frontier.failTasksOfHost(id, {
        host: 'a.example',
        code: 'server-error',
        detail: 'x',
        now: T0,
        limit: 10,
      });
      await setup.store.jobs.update(id, { state: 'done' });
      expect(await setup.store.frontier.revisit(id + 1, taskId)).toBe(false);
      expect(await setup.store.frontier.revisit(id, taskId)).toBe(true);
      expect(await setup.store.jobs.counters(id)).toMatchObject({ accepted: 1, dead: 0, pending: 1 });
      expect(await setup.store.jobs.get(id)).toMatchObject({ state: 'running' });
      expect(await setup.store.views.tallies(id)).toEqual([]);
    });
  });
}
