import { describe, expect, test } from 'vitest';
import { changePriority } from '../../../../src/coordinator/priority/task-priorities.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  FAR,
  settlementOf,
  T0,
  taskOf,
  tasksOf,
} from '../../../support/fixtures.ts';
import { A, B, type StoreSetup } from '../store-setup.ts';

export function testPriorities(setup: StoreSetup): void {
  describe('priorities that are changed while a job runs', () => {
    const leaseUrls = async (count: number) => {
      const { frontier } = setup.store;
      const due = await frontier.dueHosts(setup.job.id, { now: FAR - 1, before: FAR, limit: 10 });
      const grants = due.map(({ id }) => ({ hostId: id, count, nextAt: T0 }));
      const [batch] = await frontier.lease(setup.job.id, { batches: [{ grants, leaseMs: 1_000 }], now: T0 });
      return batch!;
    };
    const noticed = async () => {};

    test('hold for tasks that wait, by pattern and by route, and are given in steps', async () => {
      await enqueue(setup.store, setup.job, [
        ...tasksOf(`${A}/1`, `${A}/p/2`, `${A}/3`, `${A}/p/4`),
        taskOf(`${A}/5`, { route: 'list' }),
      ]);
      const priorityOf = ({ url, route }: { url: string; route: string | null }) =>
        route === 'list' ? 9 : url.includes('/p/') ? 5 : null;
      let changed = 0;
      let step = { changed: 0, after: 0, isDone: false };
      let steps = 0;
      while (!step.isDone) {
        step = await setup.store.frontier.setPriorities(setup.job.id, {
          after: step.after,
          limit: 2,
          priorityOf,
        });
        changed += step.changed;
        steps++;
      }
      expect([changed, steps]).toEqual([3, 3]);
      const { tasks } = await leaseUrls(5);
      expect(tasks.map(({ url }) => url.slice(A.length))).toEqual(['/5', '/p/2', '/p/4', '/1', '/3']);
      const again = { after: 0, limit: 100, priorityOf };
      expect(await setup.store.frontier.setPriorities(setup.job.id, again)).toMatchObject({ changed: 0 });
    });

    test('are of one job, and not of tasks that have ended', async () => {
      const other = await createJob(setup.store, 'other');
      await enqueue(setup.store, other, tasksOf(`${B}/1`));
      await enqueue(setup.store, setup.job, tasksOf(`${A}/1`, `${A}/2`));
      const { id, tasks } = await leaseUrls(1);
      await setup.store.frontier.settle(settlementOf(setup.job, id, [change.fetched(tasks[0]!.id)]));
      await enqueue(setup.store, other, tasksOf(`${B}/2`));
      expect(await changePriority(setup.store, setup.job, { pattern: '**', priority: 7 }, noticed)).toBe(1);
      const rows = async (jobId: number) =>
        (await collect(setup.store.views.tasks(jobId))).map(({ priority }) => priority);
      expect(await rows(setup.job.id)).toEqual([0, 7]);
      expect(await rows(other.id)).toEqual([0, 0]);
      expect(await setup.store.jobs.priorities(setup.job.id)).toEqual([{ pattern: '**', priority: 7 }]);
      expect((await setup.store.jobs.get(setup.job.id)).priorities).toHaveLength(1);
      expect(await setup.store.jobs.priorities(other.id)).toEqual([]);
    });

    test('leave pages that keep failing behind all others', async () => {
      await enqueue(setup.store, setup.job, tasksOf(`${A}/sick`, `${A}/1`));
      const { id, tasks } = await leaseUrls(1);
      const sick = change.again(tasks[0]!.id, null, { lowersPriority: true });
      await setup.store.frontier.settle(settlementOf(setup.job, id, [sick]));
      const rule = { pattern: '/sick', priority: 100 };
      expect(await changePriority(setup.store, setup.job, rule, noticed)).toBe(1);
      const [first] = await collect(setup.store.views.tasks(setup.job.id));
      expect(first).toMatchObject({ url: `${A}/sick`, priority: 100 });
      expect((await leaseUrls(2)).tasks.map(({ url }) => url)).toEqual([`${A}/1`, `${A}/sick`]);
    });

    test('reach tasks that were written before the coordinator knew of them', async () => {
      await enqueue(setup.store, setup.job, tasksOf(`${A}/1`));
      const late = () => enqueue(setup.store, setup.job, tasksOf(`${A}/2`)).then(() => {});
      expect(await changePriority(setup.store, setup.job, { pattern: '/*', priority: 3 }, late)).toBe(2);
    });
  });
}
