import { describe, expect, test } from 'vitest';
import type { ShotRef } from '../../../../src/core/model.ts';
import type { Job } from '../../../../src/ports/store.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  leaseOne,
  recordOf,
  settlementOf,
  T0,
  tasksOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, expectBalance, type StoreSetup } from '../store-setup.ts';

const shot = (name: string): ShotRef => ({ kind: 'screenshot', key: name, type: 'image/png', bytes: 1 });

/** Jobs that are deleted. */
export function testRemovals(setup: StoreSetup): void {
  const fetchAll = async (job: Job, shots: (url: string) => ShotRef[]) => {
    const { id, tasks } = await leaseOne(setup.store, job);
    const changes = tasks.map((task) =>
      change.fetched(task.id, {
        trace: traceOf({ shots: shots(task.url) }),
        records: [recordOf(task.url, { by: job.id })],
      }),
    );
    await setup.store.frontier.settle(settlementOf(job, id, changes));
  };
  const removeRows = async (jobId: number) => {
    for (let after = 0, isEnd = false; !isEnd; )
      ({ after, isEnd } = await setup.store.removals.removeRows(jobId, { after, limit: 2 }));
  };

  describe('removals', () => {
    test('only a job that does not run is marked, and then nothing else finds it', async () => {
      const { jobs, removals } = setup.store;
      const { id } = setup.job;
      expect(await removals.mark(id, T0)).toBe(false);
      await jobs.update(id, { state: 'stopped' });
      expect(await removals.mark(id + 99, T0)).toBe(false);
      expect(await removals.mark(id, T0)).toBe(true);
      expect(await removals.mark(id, T0)).toBe(false);
      expect([await jobs.byId(id), await jobs.find('test')]).toEqual([null, null]);
      expect(await jobs.listBefore({ before: 999, limit: 9 })).toEqual([]);
      await setup.reopen();
      expect(await setup.store.removals.list(9)).toEqual([{ id, name: 'test', run: 1 }]);
    });

    test('rows of the job are gone, those of others stay, and no number is given again', async () => {
      const { store, job } = setup;
      const other = await createJob(store, 'other');
      await enqueue(store, job, tasksOf(`${A}/1`, `${A}/2`));
      await enqueue(store, other, tasksOf(`${A}/1`, `${A}/3`));
      await enqueue(store, job, tasksOf(`${A}/4`, `${A}/5`));
      await fetchAll(other, () => [shot('shared')]);
      await fetchAll(job, (url) => [shot('shared'), shot(url)]);
      const last = (await store.views.taskId(job.id, `${A}/5`))!;
      const attempts = (await store.views.attemptStep(job.id, { after: 0, limit: 99 })).rows;
      await store.jobs.update(job.id, { state: 'done' });
      await store.removals.mark(job.id, T0);

      const own = new Set((await store.removals.sharedBlobs(job.id, { after: 0, limit: 99 })).keys);
      expect([...own].sort()).toEqual([`${A}/1`, `${A}/2`, `${A}/4`, `${A}/5`, 'shared']);
      const kept = await store.removals.blobsOfOthers(job.id, own, { after: 0, limit: 99 });
      expect(new Set(kept.keys)).toEqual(new Set(['shared']));
      expect(kept.isEnd).toBe(true);
      const part = await store.removals.sharedBlobs(job.id, { after: 0, limit: 1 });
      expect(part).toMatchObject({ after: 1, isEnd: false });

      await removeRows(job.id);
      await removeRows(job.id);
      expect(await store.removals.list(9)).toEqual([]);
      expect((await store.views.attemptStep(job.id, { after: 0, limit: 99 })).rows).toEqual([]);
      expect((await collect(store.views.records(other.id))).map(({ url }) => url)).toEqual([
        `${A}/1`,
        `${A}/3`,
      ]);
      expect((await collect(store.views.shots(other.id))).map(({ key }) => key)).toEqual([
        'shared',
        'shared',
      ]);
      await expectBalance(store, other);

      await setup.reopen();
      const again = await createJob(setup.store, 'test');
      expect(again.id).toBeGreaterThan(other.id);
      await enqueue(setup.store, again, tasksOf(`${A}/1`, `${A}/6`));
      expect(await enqueue(setup.store, other, tasksOf(`${A}/3`, `${A}/7`))).toMatchObject({ accepted: 1 });
      expect(await setup.store.views.taskId(again.id, `${A}/1`)).toBeGreaterThan(last);
      await fetchAll(again, () => []);
      const [first] = (await setup.store.views.attemptStep(again.id, { after: 0, limit: 1 })).rows;
      expect(first!.id).toBeGreaterThan(attempts.at(-1)!.id);
      await expectBalance(setup.store, other, again);
    });
  });
}
