import { describe, expect, test } from 'vitest';
import {
  change,
  collect,
  createJob,
  FAR,
  hostChange,
  leaseOne,
  pageOf,
  recordOf,
  robotsEntry,
  settlementOf,
  T0,
  tasksOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Reports settle what was lent, once. */
export function testSettle(setup: StoreSetup): void {
  const { add, due, row, counters, release, settle } = setup;

  describe('settle', () => {
    test('every outcome puts its task where it belongs', async () => {
      await add(...Array.from({ length: 8 }, (_, n) => `${A}/${n}`));
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const ids = tasks.map((task) => task.id);
      const result = await settle(id, [
        change.fetched(ids[0]!),
        change.unchanged(ids[1]!),
        change.skipped(ids[2]!, { code: 'scope', detail: 'out' }),
        change.dead(ids[3]!),
        change.again(ids[4]!, T0 + 50),
        change.deferred(ids[5]!),
        change.moved(ids[6]!, `${A}/new`),
        change.fetched(ids[7]!, {
          outcome: 'redirected',
          redirectTo: `${A}/else`,
          links: tasksOf(`${A}/else`),
        }),
      ]);
      expect(result).toEqual({ applied: true, accepted: 1 });
      const states = (await collect(setup.store.views.tasks(setup.job.id))).map((each) => each.state);
      const expected = ['done', 'unchanged', 'skipped', 'dead', 'pending', 'pending', 'pending', 'done'];
      expect(states).toEqual([...expected, 'pending']);
      expect(await counters()).toMatchObject({
        accepted: 9,
        done: 2,
        unchanged: 1,
        skipped: 1,
        dead: 1,
        pending: 4,
        leased: 0,
        retries: 1,
        requests: 6,
        batches: 1,
        bytes: 400,
      });
      expect(await row(`${A}/2`)).toMatchObject({
        failureCode: 'scope',
        failureDetail: 'out',
        attempts: 0,
      });
      expect(await row(`${A}/3`)).toMatchObject({ failureCode: 'not-found', httpStatus: 404, attempts: 1 });
      expect(await row(`${A}/7`)).toMatchObject({ redirectTo: `${A}/else` });
      expect(await due()).toMatchObject([{ ready: 3 }]);
      await expectBalance(setup.store, setup.job);
    });

    test('a page is kept with all that is known of it', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const page = pageOf({
        httpStatus: 203,
        bytes: 777,
        sha256: '0f'.repeat(32),
        contentType: 'text/plain',
      });
      const trace = traceOf({ httpStatus: 203, startedAt: T0 + 5 });
      const archived = { ...page, archive: { offset: 321, length: 99 } };
      const changes = [
        change.fetched(tasks[0]!.id, { page: archived, trace }),
        change.fetched(tasks[1]!.id, { page, trace }),
      ];
      await settle(id, changes, { archive: { key: 'warc/x-0.warc.gz', bytes: 1_000 }, now: T0 + 9 });
      expect(await row(`${A}/1`)).toMatchObject({
        httpStatus: 203,
        bytes: 777,
        sha256: '0f'.repeat(32),
        contentType: 'text/plain',
        archive: { key: 'warc/x-0.warc.gz', offset: 321, length: 99 },
        fetchedAt: new Date(T0 + 5).toISOString(),
      });
      expect((await row(`${A}/2`))?.archive).toBeNull();
      const other = await createJob(setup.store, 'other');
      expect(await setup.store.views.hasArchive(setup.job.id, 'warc/x-0.warc.gz')).toBe(true);
      expect(await setup.store.views.hasArchive(setup.job.id, 'warc/x-1.warc.gz')).toBe(false);
      expect(await setup.store.views.hasArchive(other.id, 'warc/x-0.warc.gz')).toBe(false);
    });

    test('a pack of objects is remembered beside the archive, and without one', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const page = { ...pageOf({}), archive: { offset: 5, length: 9 } };
      await settle(id, [change.fetched(tasks[0]!.id, { page })], {
        archive: { key: 'warc/1-0.warc.gz', bytes: 10 },
        pack: { key: 'shards/1-0.tar', bytes: 20 },
        final: false,
      });
      const pack = { key: 'shards/1-1.tar', bytes: 30 };
      await settle(id, [change.fetched(tasks[1]!.id)], { archive: null, pack });
      for (const key of ['warc/1-0.warc.gz', 'shards/1-0.tar', 'shards/1-1.tar'])
        expect(await setup.store.views.hasArchive(setup.job.id, key), key).toBe(true);
      expect((await row(`${A}/1`))?.archive).toEqual({ key: 'warc/1-0.warc.gz', offset: 5, length: 9 });
      expect((await row(`${A}/2`))?.archive).toBeNull();
    });

    test('a success wipes the failure before it', async () => {
      await add(`${A}/1`);
      const first = await leaseOne(setup.store, setup.job);
      await settle(first.id, [change.again(first.tasks[0]!.id, null)]);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'pending', failureCode: 'reset', attempts: 1 });
      const second = await leaseOne(setup.store, setup.job);
      await settle(second.id, [change.fetched(second.tasks[0]!.id)]);
      expect(await row(`${A}/1`)).toMatchObject({
        state: 'done',
        failureCode: null,
        failureDetail: null,
        attempts: 2,
      });
    });

    test.each([
      ['doubled', async (id: number) => void (await settle(id, []))],
      ['after a release', async (id: number) => void (await release(id))],
      ['after a suspect release', async (id: number) => void (await release(id, 'worker'))],
    ])('a report %s changes nothing', async (_, before) => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await before(id);
      const rows = await collect(setup.store.views.tasks(setup.job.id));
      const counts = await counters();
      const late = settlementOf(
        setup.job,
        id,
        [change.fetched(tasks[0]!.id, { records: [recordOf('r', { a: 1 })], links: tasksOf(`${B}/new`) })],
        {
          archive: { key: 'warc/late', bytes: 5 },
          pack: { key: 'shards/late', bytes: 6 },
          requests: 50,
          hosts: [hostChange('a.example', { sent: 5, nextAt: FAR, failuresInRow: 9 })],
          robots: [robotsEntry(A)],
        },
      );
      for (const final of [true, false]) {
        expect(await setup.store.frontier.settle({ ...late, final })).toEqual({
          applied: false,
          accepted: 0,
        });
      }
      expect(await collect(setup.store.views.tasks(setup.job.id))).toEqual(rows);
      expect(await counters()).toEqual(counts);
      expect(await collect(setup.store.views.records(setup.job.id))).toEqual([]);
      const attempts = await collect(setup.store.views.attempts(setup.job.id));
      expect(attempts.filter(({ outcome }) => outcome !== 'lost')).toEqual([]);
      expect(await setup.store.views.hasArchive(setup.job.id, 'warc/late')).toBe(false);
      expect(await setup.store.views.hasArchive(setup.job.id, 'shards/late')).toBe(false);
      expect(await setup.store.hosts.robots(A)).toBeNull();
      expect(await due({ before: T0 + 1 })).toMatchObject([{ failuresInRow: 0, ready: 2 }]);
    });

    test('a report cannot settle tasks of another batch, nor a task twice', async () => {
      await add(`${A}/1`, `${A}/2`);
      const one = await leaseOne(setup.store, setup.job, { count: 1 });
      const two = await leaseOne(setup.store, setup.job, { count: 1 });
      const [mine, theirs] = [one.tasks[0]!.id, two.tasks[0]!.id];
      const records = [recordOf('stolen', {})];
      const result = await settle(one.id, [
        change.dead(theirs, { records, links: tasksOf(`${B}/stolen`) }),
        change.fetched(mine),
        change.dead(mine),
        change.dead(99_999),
      ]);
      expect(result.applied).toBe(true);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'done', attempts: 1 });
      expect(await row(`${A}/2`)).toMatchObject({ state: 'leased', attempts: 0 });
      expect(await counters()).toMatchObject({ accepted: 2, done: 1, leased: 1, dead: 0, records: 0 });
      expect(await collect(setup.store.views.attempts(setup.job.id))).toHaveLength(1);
      await expectBalance(setup.store, setup.job);
    });

    test('each attempt that failed keeps why, also after another one; a page that came has nothing to say', async () => {
      await add(`${A}/1`);
      const first = await leaseOne(setup.store, setup.job);
      await settle(first.id, [change.again(first.tasks[0]!.id, null, { detail: 'reset (shop.ts:12)' })]);
      const second = await leaseOne(setup.store, setup.job);
      await settle(second.id, [change.fetched(second.tasks[0]!.id, { detail: 'not kept' })]);
      const attempts = await collect(setup.store.views.attempts(setup.job.id));
      expect(attempts.map(({ detail }) => detail)).toEqual(['reset (shop.ts:12)', null]);
    });

    test('a report under the name of another job is refused', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      const result = await setup.store.frontier.settle(
        settlementOf(other, id, [change.fetched(tasks[0]!.id)]),
      );
      expect(result.applied).toBe(false);
      expect(await counters()).toMatchObject({ leased: 1 });
      await expectBalance(setup.store, setup.job, other);
    });

    test('parts settle what they have; the last one returns what nobody mentioned', async () => {
      await add(...Array.from({ length: 4 }, (_, n) => `${A}/${n}`));
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await settle(id, [change.fetched(tasks[2]!.id)], { final: false });
      expect(await counters()).toMatchObject({ done: 1, leased: 3, batches: 0 });
      expect(await setup.store.frontier.orphans(setup.job.id)).toEqual([id]);
      await expectBalance(setup.store, setup.job);
      // The same part again: its task is settled, so nothing is left of it.
      await settle(id, [change.dead(tasks[2]!.id)], { final: false, requests: 0 });
      expect(await row(`${A}/2`)).toMatchObject({ state: 'done', attempts: 1 });
      await settle(id, [change.dead(tasks[0]!.id)], { final: true });
      expect(await counters()).toMatchObject({
        done: 1,
        dead: 1,
        pending: 2,
        leased: 0,
        batches: 1,
        requests: 2,
      });
      expect(await row(`${A}/1`)).toMatchObject({ state: 'pending', attempts: 0 });
      expect(await due()).toMatchObject([{ ready: 2 }]);
      expect(await setup.store.frontier.orphans(setup.job.id)).toEqual([]);
      await expectBalance(setup.store, setup.job);
    });

    test('a release after a part returns only the rest', async () => {
      await add(`${A}/1`, `${A}/2`);
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      await settle(id, [change.fetched(tasks[0]!.id)], { final: false });
      expect(await release(id)).toEqual({ returned: 1, dead: 0 });
      expect(await counters()).toMatchObject({ done: 1, pending: 1, leased: 0 });
      await expectBalance(setup.store, setup.job);
    });
  });
}
