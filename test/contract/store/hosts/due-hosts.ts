import { describe, expect, test } from 'vitest';
import {
  change,
  createJob,
  enqueue,
  FAR,
  hostChange,
  leaseOne,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { A, B, type StoreSetup } from '../store-setup.ts';

/** Which hosts may be asked, and when. */
export function testDueHosts(setup: StoreSetup): void {
  const { add, due, hostsDue, release, settle, reopen } = setup;

  describe('due hosts', () => {
    test('have their ready tasks counted, and come in the order of their next time', async () => {
      await add(`${A}/1`, `${A}/2`, `${B}/1`, 'https://c.example/1', 'https://c.example/2');
      const ready = await due();
      expect(new Map(ready.map((host) => [host.host, host.ready]))).toEqual(
        new Map([
          ['a.example', 2],
          ['b.example', 1],
          ['c.example', 2],
        ]),
      );
      expect(ready[0]).toMatchObject({ crawlDelayMs: null, failuresInRow: 0, rests: 0 });
      const times: Record<string, number> = { 'a.example': 300, 'b.example': 100, 'c.example': 200 };
      const grants = ready.map((host) => ({ hostId: host.id, count: 1, nextAt: T0 + times[host.host]! }));
      await setup.store.frontier.lease(setup.job.id, { batches: [{ grants, leaseMs: 1_000 }], now: T0 });
      expect(await hostsDue()).toEqual(['c.example', 'a.example']);
      expect(await hostsDue({ limit: 1 })).toEqual(['c.example']);
    });

    test('a host is seen ahead of its time only as far as asked', async () => {
      await add(`${A}/1`, `${A}/2`);
      await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 1_000 });
      expect(await hostsDue({ before: T0 + 999 })).toEqual([]);
      const [host] = await due({ before: T0 + 1_000 });
      expect(host).toMatchObject({ host: 'a.example', ready: 1, nextAt: T0 + 1_000 });
      await reopen();
      expect(await hostsDue({ before: T0 + 999 })).toEqual([]);
      expect((await due({ before: T0 + 1_000 }))[0]?.nextAt).toBe(T0 + 1_000);
    });

    test('a host in use by one job is not due for another before its time', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/1`);
      await enqueue(setup.store, other, tasksOf(`${A}/1`));
      await leaseOne(setup.store, setup.job, { nextAt: T0 + 5_000 });
      const look = (before: number) => setup.store.frontier.dueHosts(other.id, { now: T0, before, limit: 9 });
      expect(await look(T0 + 4_999)).toEqual([]);
      expect(await look(T0 + 5_000)).toMatchObject([{ host: 'a.example', nextAt: T0 + 5_000 }]);
    });

    test('a host with all tasks lent, done or waiting is not due', async () => {
      await add(`${A}/1`, `${B}/1`, 'https://c.example/1');
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      expect(await due()).toEqual([]);
      await settle(id, [change.fetched(tasks[0]!.id), change.again(tasks[1]!.id, T0 + 100)], {
        final: false,
      });
      expect(await due()).toEqual([]);
      expect((await due({ now: T0 + 99 })).length).toBe(0);
      expect(await due({ now: T0 + 100 })).toMatchObject([{ ready: 1 }]);
    });

    test('the next due time is the earliest of hosts and waiting tasks', async () => {
      expect(await setup.store.frontier.nextDueAt(setup.job.id)).toBeNull();
      await add(`${A}/1`, `${A}/2`, `${B}/1`);
      const a = (await due()).find((host) => host.host === 'a.example')!;
      const b = (await due()).find((host) => host.host === 'b.example')!;
      const lease = (hostId: number, count: number, nextAt: number) =>
        setup.store.frontier.lease(setup.job.id, {
          batches: [{ grants: [{ hostId, count, nextAt }], leaseMs: 9 }],
          now: T0,
        });
      const [first] = await lease(b.id, 1, T0 + 50);
      await lease(a.id, 1, T0 + 700);
      expect(await setup.store.frontier.nextDueAt(setup.job.id)).toBe(T0 + 700);
      await settle(first!.id, [change.again(first!.tasks[0]!.id, T0 + 300)]);
      expect(await setup.store.frontier.nextDueAt(setup.job.id)).toBe(T0 + 300);
      const [second] = await lease(a.id, 1, T0 + 900);
      expect(await setup.store.frontier.nextDueAt(setup.job.id)).toBe(T0 + 300);
      expect(second!.tasks).toHaveLength(1);
      const other = await createJob(setup.store, 'other');
      expect(await setup.store.frontier.nextDueAt(other.id)).toBeNull();
    });

    test('no time lies further ahead than the clamp, for what is ready and what returns later', async () => {
      await add(`${A}/1`, `${A}/2`, `${B}/1`);
      const batch = await leaseOne(setup.store, setup.job, { count: 1, nextAt: FAR });
      const clamp = (latest: number, to: number) => setup.store.hosts.clampNextAt({ latest, to });
      expect(await clamp(T0 + 5_000, T0 + 1_000)).toBe(2);
      expect((await due({ before: T0 + 1_000 })).map((host) => host.nextAt)).toEqual([T0 + 1_000]);
      await release(batch.id);
      expect((await hostsDue({ before: T0 + 1_000 })).sort()).toEqual(['a.example', 'b.example']);
      expect(await clamp(FAR, T0)).toBe(0);
      expect((await hostsDue({ before: T0 + 1_000 })).sort()).toEqual(['a.example', 'b.example']);
    });

    test('a host that is taken until later than a plan begins is left out of it', async () => {
      await add(`${A}/1`, `${A}/2`, `${B}/1`);
      const hosts = await due();
      const lease = async (host: string, startAt: number, nextAt: number) => {
        const hostId = hosts.find((each) => each.host === host)!.id;
        const batches = [{ grants: [{ hostId, count: 1, startAt, nextAt }], leaseMs: 9_000 }];
        const [batch] = await setup.store.frontier.lease(setup.job.id, { batches, now: T0 });
        return batch!;
      };
      expect((await lease('a.example', T0, T0 + 500)).tasks).toHaveLength(1);
      expect((await lease('a.example', T0 + 499, T0 + 900)).tasks).toEqual([]);
      expect((await due()).find((each) => each.host === 'a.example')?.nextAt).toBe(T0 + 500);
      expect((await lease('a.example', T0 + 500, T0 + 900)).tasks).toHaveLength(1);
    });

    test('a report cannot bring forward the time of a host that was lent again since it was weighed', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      const first = await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 500 });
      await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 900 });
      const free = (nextAt: number, takenUntil: number) => ({
        final: false,
        hosts: [hostChange('a.example', { nextAt, takenUntil })],
      });
      await settle(first.id, [], free(T0 + 100, T0 + 500));
      expect((await due())[0]?.nextAt).toBe(T0 + 900);
      await settle(first.id, [], free(T0 + 2_000, T0 + 500));
      expect((await due())[0]?.nextAt).toBe(T0 + 2_000);
      await settle(first.id, [], free(T0 + 100, T0 + 2_000));
      expect((await due())[0]?.nextAt).toBe(T0 + 100);
    });

    test('a host that waits for the gap of a job alone can come forward for that job, and for no other', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/1`, `${A}/2`, `${B}/1`, `${B}/2`);
      await enqueue(setup.store, other, tasksOf(`${A}/1`));
      const { frontier } = setup.store;
      const paced = (jobId = setup.job.id, after = T0 + 1_000) =>
        frontier.pacedHosts(jobId, { gapOf: 'this-job', after, limit: 9 });
      const until = T0 + 60_000;
      const batch = await leaseOne(setup.store, setup.job, { count: 1, nextAt: until });
      // While its permit is out it waits for that.
      expect(await paced()).toEqual([]);
      const waits = { nextAt: until, takenUntil: until, span: { from: T0, to: T0 + 5.5 } };
      await settle(batch.id, [], {
        hosts: [hostChange('a.example', { ...waits, isPaced: true }), hostChange('b.example', waits)],
      });
      expect(await paced(other.id)).toEqual([]);
      expect(await paced(setup.job.id, until)).toEqual([]);
      const [host, ...more] = await paced();
      expect(more).toEqual([]);
      expect(host).toMatchObject({ host: 'a.example', nextAt: until, lastSentAt: T0 + 5.5 });
      const hostId = host!.id;
      await frontier.bringForward([{ hostId, from: until - 1, nextAt: T0 + 10 }]);
      expect(await hostsDue({ before: T0 + 10 })).toEqual([]);
      await frontier.bringForward([{ hostId, from: until, nextAt: T0 + 10 }]);
      expect(await hostsDue({ before: T0 + 10 })).toEqual(['a.example']);
      const ofOther = await frontier.dueHosts(other.id, { now: T0, before: T0 + 10, limit: 9 });
      expect(ofOther).toMatchObject([{ host: 'a.example', nextAt: T0 + 10 }]);
    });

    test('a host that waits for the gap of another job can come forward when that runs no more', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/1`, `${A}/2`);
      await enqueue(setup.store, other, tasksOf(`${A}/1`));
      const { frontier, jobs } = setup.store;
      const outlived = (jobId: number) =>
        frontier.pacedHosts(jobId, { gapOf: 'ended-jobs', after: T0 + 1_000, limit: 9 });
      const until = T0 + 60_000;
      const batch = await leaseOne(setup.store, setup.job, { count: 1, nextAt: until });
      const waits = { nextAt: until, takenUntil: until, span: { from: T0, to: T0 + 5 }, isPaced: true };
      await settle(batch.id, [], { hosts: [hostChange('a.example', waits)] });
      await frontier.dueHosts(other.id, { now: T0, before: T0 + 10, limit: 9 });
      expect(await outlived(other.id)).toEqual([]);
      await jobs.update(setup.job.id, { state: 'cancelled', endedAt: T0 });
      expect(await outlived(setup.job.id)).toEqual([]);
      expect(await outlived(other.id)).toMatchObject([{ host: 'a.example', lastSentAt: T0 + 5 }]);
    });
  });
}
