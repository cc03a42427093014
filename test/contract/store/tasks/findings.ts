import { describe, expect, test } from 'vitest';
import {
  change,
  collect,
  enqueue,
  hostChange,
  leaseOne,
  recordHash,
  recordOf,
  robotsEntry,
  T0,
  taskOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** What reports bring besides outcomes: links, records, attempts, hosts, redirects. */
export function testFindings(setup: StoreSetup): void {
  const { add, due, hostsDue, row, counters, settle, reopen } = setup;

  describe('what a settlement brings', () => {
    test('links become tasks, deduped against everything and each other', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const links = [
        taskOf(`${B}/x`, { depth: 1, priority: 3, route: 'p', template: 't' }),
        taskOf(`${A}/2`, { depth: 1 }),
      ];
      const result = await settle(id, [
        change.fetched(tasks[0]!.id, { links }),
        change.fetched(tasks[1]!.id, { links }),
      ]);
      expect(result.accepted).toBe(1);
      expect(await row(`${B}/x`)).toMatchObject({ state: 'pending', depth: 1, priority: 3, route: 'p' });
      expect(await counters()).toMatchObject({ accepted: 3, duplicates: 3 });
      await expectBalance(setup.store, setup.job);
    });

    test('the budget of a template holds over enqueue and settle', async () => {
      await enqueue(setup.store, setup.job, [taskOf(`${A}/1`), taskOf(`${A}/c/1`, { template: 't' })], 2);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const links = [2, 3, 4].map((n) => taskOf(`${A}/c/${n}`, { template: 't' }));
      await settle(id, [change.fetched(tasks[0]!.id, { links })], { perTemplateMax: 2 });
      expect(await counters()).toMatchObject({ accepted: 3, dropped: 2 });
      await expectBalance(setup.store, setup.job);
    });

    test('a record is kept once for its key, in its last form', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const ids = tasks.map((task) => task.id);
      const put = (index: number, key: string, data: object, now: number) =>
        settle(id, [change.fetched(ids[index]!, { records: [recordOf(key, data)] })], {
          final: false,
          now,
        });
      await put(0, 'k1', { n: 1, text: 'ü€"\n' }, T0 + 1);
      await put(1, 'k1', { n: 1, text: 'ü€"\n' }, T0 + 2);
      expect(await collect(setup.store.views.records(setup.job.id))).toMatchObject([
        { key: 'k1', updatedAt: new Date(T0 + 1).toISOString() },
      ]);
      await put(2, 'k1', { n: 2 }, T0 + 3);
      expect(await collect(setup.store.views.records(setup.job.id))).toEqual([
        {
          key: 'k1',
          url: `${A}/3`,
          route: null,
          data: { n: 2 },
          hash: recordHash({ n: 2 }),
          createdAt: new Date(T0 + 1).toISOString(),
          updatedAt: new Date(T0 + 3).toISOString(),
          checkedAt: new Date(T0 + 3).toISOString(),
          goneAt: null,
          meta: null,
        },
      ]);
      expect((await counters()).records).toBe(1);
      await expectBalance(setup.store, setup.job);
    });

    test('an attempt is logged for each request, with how it went', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await settle(
        id,
        [
          change.again(tasks[0]!.id, T0, {
            trace: traceOf({ startedAt: T0 + 7.4, durationMs: 3.6, httpStatus: null, bytes: 0 }),
          }),
          change.fetched(tasks[1]!.id),
          change.skipped(tasks[2]!.id),
        ],
        { worker: 'w-7' },
      );
      expect(await collect(setup.store.views.attempts(setup.job.id))).toMatchObject([
        {
          url: `${A}/1`,
          batch: id,
          worker: 'w-7',
          startedAt: new Date(T0 + 7).toISOString(),
          durationMs: 4,
          httpStatus: null,
          outcome: 'failed',
          failureCode: 'reset',
          bytes: 0,
        },
        { url: `${A}/2`, httpStatus: 200, outcome: 'fetched', failureCode: null, bytes: 100 },
      ]);
    });

    test('a host keeps its health and its time', async () => {
      await add(`${A}/1`, `${A}/2`, `${B}/1`);
      const { id } = await leaseOne(setup.store, setup.job, { count: 1, nextAt: T0 + 100 });
      await settle(id, [], {
        final: false,
        hosts: [
          hostChange('a.example', { sent: 4, nextAt: T0 + 900, failuresInRow: 3, rests: 2 }),
          hostChange('new.example', { nextAt: T0 + 5 }),
        ],
      });
      expect(await due()).toMatchObject([
        { host: 'a.example', nextAt: T0 + 900, failuresInRow: 3, rests: 2 },
      ]);
      await settle(id, [], { hosts: [hostChange('a.example', { failuresInRow: 0, rests: 0 })] });
      const after = await due();
      expect(after.find((host) => host.host === 'a.example')).toMatchObject({
        nextAt: T0 + 900,
        failuresInRow: 0,
        rests: 0,
      });
      expect(after.find((host) => host.host === 'b.example')).toMatchObject({ nextAt: T0 + 100 });
      // A host that got a time before its first task keeps it.
      await add('https://new.example/1');
      expect((await due()).find((host) => host.host === 'new.example')).toMatchObject({ nextAt: T0 + 5 });
    });

    test('robots.txt is kept by origin, and its delay with the host', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id } = await leaseOne(setup.store, setup.job, { count: 1 });
      const entry = robotsEntry(A, {
        text: 'User-agent: *\nCrawl-delay: 2',
        crawlDelayMs: 2_000,
        fetchedAt: T0 + 3,
      });
      await settle(id, [], { final: false, robots: [entry] });
      expect(await setup.store.hosts.robots(A)).toEqual(entry);
      expect(await setup.store.hosts.robots('http://a.example')).toBeNull();
      expect(await due()).toMatchObject([{ crawlDelayMs: 2_000 }]);
      await reopen();
      const gone = robotsEntry(A, {
        text: null,
        failures: 2,
        detail: 'connect: refused',
        fetchedAt: T0 + 9,
      });
      await settle(id, [], { robots: [gone] });
      expect(await setup.store.hosts.robots(A)).toEqual(gone);
    });

    test('a redirect that is followed goes on at the other host, as the same task', async () => {
      await add(`${A}/1`, `${B}/9`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const mine = tasks.find((task) => task.url === `${A}/1`)!;
      await settle(id, [change.moved(mine.id, `${B}/moved`)]);
      await expectBalance(setup.store, setup.job);
      expect(await hostsDue()).toEqual(['b.example']);
      expect(await due()).toMatchObject([{ ready: 2 }]);
      const next = await leaseOne(setup.store, setup.job);
      const moved = next.tasks.find((task) => task.id === mine.id)!;
      expect(moved).toMatchObject({ url: `${B}/moved`, hops: 1, attempt: 1 });
      await settle(next.id, [change.moved(moved.id, `${A}/third`)]);
      const third = await leaseOne(setup.store, setup.job);
      expect(third.tasks.find((task) => task.id === mine.id)).toMatchObject({ url: `${A}/third`, hops: 2 });
      await settle(third.id, [change.fetched(mine.id)]);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'done', attempts: 1 });
      expect(await row(`${A}/third`)).toBeNull();
      await expectBalance(setup.store, setup.job);
    });

    test('a task that followed redirects says where its page came from', async () => {
      await add(`${A}/1`);
      const first = await leaseOne(setup.store, setup.job);
      await settle(first.id, [change.moved(first.tasks[0]!.id, `${B}/moved`)]);
      const second = await leaseOne(setup.store, setup.job);
      await settle(second.id, [change.fetched(second.tasks[0]!.id)]);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'done', redirectTo: `${B}/moved` });
    });

    test('a move without a stored page moves the task all the same', async () => {
      await add(`${A}/1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await settle(id, [change.moved(tasks[0]!.id, `${B}/moved`, { page: null })]);
      expect(await hostsDue()).toEqual(['b.example']);
      expect((await leaseOne(setup.store, setup.job)).tasks).toMatchObject([{ url: `${B}/moved`, hops: 1 }]);
      await expectBalance(setup.store, setup.job);
    });

    test('a settle that fails changes nothing and can be done again', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const broken = { ...taskOf(`${B}/2`), url: null as never };
      const links = [taskOf(`${B}/1`), broken];
      const changes = [
        change.fetched(tasks[0]!.id, { records: [recordOf('r', {})] }),
        change.fetched(tasks[1]!.id, { links }),
      ];
      const before = await counters();
      await expect(settle(id, changes, { archive: { key: 'warc/1', bytes: 1 } })).rejects.toThrow();
      expect(await counters()).toEqual(before);
      expect(await setup.store.frontier.knows(setup.job.id, `${B}/1`)).toBe(false);
      expect(await setup.store.views.hasArchive(setup.job.id, 'warc/1')).toBe(false);
      const good = [changes[0]!, change.fetched(tasks[1]!.id, { links: [links[0]!] })];
      expect(await settle(id, good)).toEqual({ applied: true, accepted: 1 });
      expect(await hostsDue()).toEqual(['b.example']);
      await expectBalance(setup.store, setup.job);
    });
  });
}
