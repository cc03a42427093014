import { describe, expect, test } from 'vitest';
import { LOSSES_MAX } from '../../../../src/core/suspicion/suspicion.ts';
import { REOPENED_SOURCE } from '../../../../src/ports/store/job-store.ts';
import {
  change,
  createJob,
  enqueue,
  hostChange,
  leaseOne,
  pageOf,
  robotsEntry,
  settlementOf,
  specOf,
  T0,
  taskOf,
  tasksOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

const DAY = 86_400_000;
const at = (startedAt: number) => ({ trace: traceOf({ startedAt }) });

/** Later passes of a run: what was finished becomes due again. */
export function testPasses(setup: StoreSetup): void {
  const { add, due, hostsDue, row, counters, visit, beginPass, reopenTasks, reopen, settle } = setup;

  describe('passes', () => {
    test('a pass has its own code and time, reads sources anew, and knows what was before it', async () => {
      const source = { source: 0, position: '7', done: true, rows: 3, rejected: 1 };
      await setup.store.frontier.enqueue(setup.job.id, tasksOf(`${A}/1`), {
        now: T0,
        perTemplateMax: null,
        source,
      });
      await visit(({ id }) => change.fetched(id));
      const before = await counters();
      await setup.store.jobs.update(setup.job.id, {
        state: 'stopped',
        reason: 'asked',
        endedAt: T0,
        requestedState: 'stop',
      });
      const spec = specOf({ name: 'test', batchSize: 7 });
      await beginPass(T0 + DAY, { spec, specHash: 'h2', bundle: 'bundles/2.mjs', file: 'job.ts' });
      expect(setup.job).toMatchObject({
        pass: 2,
        passStart: before,
        passStartedAt: T0 + DAY,
        createdAt: T0,
        spec,
        specHash: 'h2',
        bundle: 'bundles/2.mjs',
        file: 'job.ts',
        state: 'running',
        requestedState: 'run',
        reason: null,
        endedAt: null,
      });
      expect(await counters()).toEqual(before);
      expect(await setup.store.jobs.sources(setup.job.id)).toEqual([]);
      await reopen();
      expect(await setup.store.jobs.get(setup.job.id)).toEqual(setup.job);
      await beginPass(T0 + 2 * DAY);
      expect(setup.job).toMatchObject({ pass: 3, run: 1, specHash: 'h1', file: null });
    });

    test('of several that begin the next pass at once, one does', async () => {
      const { store, job } = setup;
      const code = { ...job, now: T0 + DAY, after: job.pass };
      const begun = await Promise.all([1, 2, 3].map(() => store.jobs.beginPass(job.id, code)));
      expect(begun.map(({ pass }) => pass)).toEqual([2, 2, 2]);
      expect(await store.jobs.get(job.id)).toMatchObject({ pass: 2, passStartedAt: T0 + DAY });
    });

    test('tasks stay finished until they are reopened, whatever their state was', async () => {
      await add(`${A}/done`, `${A}/unchanged`, `${A}/skipped`, `${A}/dead`, `${B}/dead`);
      await visit(({ id, url }) => {
        if (url.endsWith('done')) return change.fetched(id);
        if (url.endsWith('unchanged')) return change.unchanged(id);
        return url.endsWith('skipped') ? change.skipped(id) : change.dead(id);
      });
      await beginPass(T0 + DAY);
      expect(await hostsDue()).toEqual([]);
      expect(await reopenTasks(T0 + DAY)).toBe(5);
      expect(await counters()).toMatchObject({
        accepted: 5,
        pending: 5,
        done: 0,
        unchanged: 0,
        skipped: 0,
        dead: 0,
      });
      expect(await setup.store.views.tallies(setup.job.id)).toEqual([]);
      expect(await row(`${A}/dead`)).toMatchObject({ state: 'pending', attempts: 0, failureCode: null });
      expect(await row(`${A}/dead`)).toMatchObject({ failureDetail: null });
      expect((await due()).map(({ host, ready }) => [host, ready]).sort()).toEqual([
        ['a.example', 4],
        ['b.example', 1],
      ]);
      await expectBalance(setup.store, setup.job);
    });

    test('nothing is reopened in the first pass, nor what came in this pass, nor what is not finished', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id));
      expect(await reopenTasks(T0 + DAY)).toBe(0);
      await beginPass(T0 + DAY);
      await add(`${A}/new`, `${A}/pending`);
      await visit(({ id, url }) =>
        url.endsWith('pending') ? change.again(id, T0 + 9 * DAY) : change.fetched(id),
      );
      expect(await counters()).toMatchObject({ accepted: 3, done: 2, pending: 1 });
      expect(await reopenTasks(T0 + 9 * DAY)).toBe(1);
      expect(await row(`${A}/1`)).toMatchObject({ state: 'pending' });
      await beginPass(T0 + 2 * DAY);
      expect(await reopenTasks(T0 + 9 * DAY)).toBe(1);
      expect(await counters()).toMatchObject({ accepted: 3, done: 0, pending: 3 });
      await expectBalance(setup.store, setup.job);
    });

    test('steps look at no more than asked, and go on after a restart without a task twice', async () => {
      const other = await createJob(setup.store, 'other');
      const url = (n: number) => `${A}/${n}`;
      for (let n = 0; n < 9; n++) {
        await add(url(n));
        await enqueue(setup.store, other, tasksOf(url(n)));
      }
      await visit(({ id }) => change.skipped(id));
      await beginPass(T0 + DAY);
      let source = {
        source: REOPENED_SOURCE,
        position: null as string | null,
        done: false,
        rows: 0,
        rejected: 0,
      };
      const steps: number[] = [];
      while (!source.done) {
        const options = { now: T0, visitedBefore: T0 + DAY, limit: 4, source };
        const result = await setup.store.frontier.reopen(setup.job.id, options);
        steps.push(result.reopened);
        expect(result.reopened).toBeLessThanOrEqual(4);
        expect(await setup.store.jobs.sources(setup.job.id)).toEqual([result.source]);
        expect(await counters()).toMatchObject({ skipped: 9 - result.reopened, pending: result.reopened });
        await reopen();
        source = { ...result.source };
        await visit(({ id }) => change.skipped(id));
      }
      expect(steps.length).toBeGreaterThan(2);
      expect(steps.reduce((sum, each) => sum + each, 0)).toBe(9);
      expect(await counters()).toMatchObject({ skipped: 9, pending: 0, rejected: 0 });
      expect(await setup.store.jobs.counters(other.id)).toMatchObject({ pending: 9 });
      await expectBalance(setup.store, setup.job, other);
    });

    test('only what was visited long enough ago is due, and what never was', async () => {
      await add(`${A}/old`, `${A}/young`, `${A}/never`);
      await visit(({ id, url }) => {
        if (url.endsWith('never')) return change.skipped(id);
        return change.fetched(id, at(url.endsWith('old') ? T0 : T0 + 10));
      });
      await beginPass(T0 + DAY);
      expect(await reopenTasks(T0 + 10)).toBe(2);
      expect(await row(`${A}/young`)).toMatchObject({ state: 'done' });
      await expectBalance(setup.store, setup.job);
    });

    test('a page that its sitemap dates before the last visit is not due, one that failed is', async () => {
      const dated = (name: string, modifiedAt: number) => taskOf(`${A}/${name}`, { modifiedAt });
      await enqueue(setup.store, setup.job, [
        dated('before', T0 - 1),
        dated('same', T0),
        dated('after', T0 + 1),
        dated('failed', T0 - 1),
        taskOf(`${A}/sitemap.xml`, { route: '@sitemap', modifiedAt: T0 - 1 }),
      ]);
      await visit(({ id, url }) => (url.endsWith('failed') ? change.dead(id) : change.fetched(id)));
      await beginPass(T0 + DAY);
      // Sitemaps are read in every pass, however young.
      expect(await reopenTasks(T0)).toBe(1);
      expect(await row(`${A}/sitemap.xml`)).toMatchObject({ state: 'pending' });
      await visit(({ id }) => change.fetched(id, at(T0 + DAY + 1)));
      await beginPass(T0 + 2 * DAY);
      expect(await reopenTasks(T0 + DAY)).toBe(3);
      for (const name of ['before', 'same'])
        expect(await row(`${A}/${name}`)).toMatchObject({ state: 'done' });
      for (const name of ['after', 'failed', 'sitemap.xml'])
        expect(await row(`${A}/${name}`)).toMatchObject({ state: 'pending' });
      await expectBalance(setup.store, setup.job);
    });

    test('a task that followed a redirect starts again at its own URL and host', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.moved(id, `${B}/moved`));
      const moved = await visit(({ id }) => change.fetched(id, { page: pageOf({ etag: '"b"' }) }));
      expect([...moved.keys()]).toEqual([`${B}/moved`]);
      await beginPass(T0 + DAY);
      expect(await reopenTasks(T0 + DAY)).toBe(1);
      expect(await row(`${A}/1`)).toMatchObject({ host: 'a.example', redirectTo: null });
      expect(await hostsDue()).toEqual(['a.example']);
      const again = await visit(({ id }) => change.moved(id, `${B}/moved`));
      // What the other URL said of its page is not to be sent to this one.
      expect(again.get(`${A}/1`)).toMatchObject({
        hops: 0,
        attempt: 1,
        lastVisit: { etag: null, lastModified: null, sha256: pageOf().sha256 },
      });
      // The redirect's own body is not the page: the next hop is compared with the page.
      const last = await visit(({ id }) => change.unchanged(id));
      expect(last.get(`${B}/moved`)).toMatchObject({ hops: 1, lastVisit: { sha256: pageOf().sha256 } });
      expect(await row(`${A}/1`)).toMatchObject({ state: 'unchanged', sha256: pageOf().sha256 });
      await expectBalance(setup.store, setup.job);
    });

    test('tasks that other jobs added in between stay finished', async () => {
      await add(`${A}/1`);
      const other = await createJob(setup.store, 'other');
      await enqueue(setup.store, other, tasksOf(`${A}/other`));
      await add(`${A}/2`);
      await visit(({ id }) => change.fetched(id));
      const { id, tasks } = await leaseOne(setup.store, other);
      await setup.store.frontier.settle(settlementOf(other, id, [change.fetched(tasks[0]!.id)]));
      await beginPass(T0 + DAY);
      expect(await reopenTasks(T0 + DAY)).toBe(2);
      expect(await counters()).toMatchObject({ pending: 2, done: 0 });
      expect(await setup.store.jobs.counters(other.id)).toMatchObject({ pending: 0, done: 1 });
      await expectBalance(setup.store, setup.job, other);
    });

    test('the losses of a worker and the rest of a host end with the pass', async () => {
      await add(`${A}/killer`);
      for (let loss = 0; loss < LOSSES_MAX; loss++) {
        const { id } = await leaseOne(setup.store, setup.job, { nextAt: T0 + 30 * DAY });
        await settle(id, [], {
          final: false,
          hosts: [hostChange('a.example', { failuresInRow: 3, rests: 2 })],
          robots: [robotsEntry(A, { text: null, failures: 5 }), robotsEntry(B)],
        });
        await setup.release(id, 'worker');
      }
      expect(await counters()).toMatchObject({ dead: 1 });
      await beginPass(T0 + DAY);
      expect(await reopenTasks(T0 + DAY)).toBe(1);
      expect(await due({ before: T0 + DAY })).toMatchObject([{ ready: 1, failuresInRow: 0, rests: 0 }]);
      expect(await setup.store.hosts.robots(A)).toBeNull();
      expect(await setup.store.hosts.robots(B)).not.toBeNull();
      const { id } = await leaseOne(setup.store, setup.job);
      expect(await setup.release(id, 'worker')).toEqual({ returned: 1, dead: 0 });
      await expectBalance(setup.store, setup.job);
    });

    test('a known URL with a newer date is due at once in a later pass, and only once in it', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      await visit(({ id, url }) => (url.endsWith('3') ? change.skipped(id) : change.fetched(id)));
      const say = (modifiedAt: number | null, ...names: string[]) =>
        enqueue(
          setup.store,
          setup.job,
          names.map((name) => taskOf(`${A}/${name}`, { modifiedAt })),
        );
      // In the first pass a date is only noted.
      expect(await say(T0 + 5, '1')).toEqual({ accepted: 0, duplicates: 1, dropped: 0 });
      expect(await counters()).toMatchObject({ done: 2, pending: 0 });
      await beginPass(T0 + DAY);
      expect(await say(null, '1', '2')).toMatchObject({ accepted: 0, duplicates: 2 });
      expect(await say(T0, '2', '3')).toMatchObject({ accepted: 0, duplicates: 2 });
      expect(await say(T0 + 5, '1', '1')).toEqual({ accepted: 0, duplicates: 1, dropped: 0 });
      expect(await counters()).toMatchObject({ accepted: 3, done: 1, pending: 1, skipped: 1 });
      await expectBalance(setup.store, setup.job);
      await visit(({ id }) => change.fetched(id, at(T0 + DAY + 1)));
      // A date in the future would make it due for ever.
      expect(await say(T0 + 99 * DAY, '1')).toMatchObject({ accepted: 0, duplicates: 1 });
      expect(await counters()).toMatchObject({ done: 2, pending: 0 });
      // The date is what reopening goes by: the newest word on the second page is from before its visit.
      expect(await reopenTasks(T0 + DAY)).toBe(1);
      await expectBalance(setup.store, setup.job);
    });

    test('a date that comes with the links of a page does the same', async () => {
      await add(`${A}/list`, `${A}/1`);
      await visit(({ id }) => change.fetched(id));
      await beginPass(T0 + DAY);
      await add(`${A}/other-list`);
      const links = [taskOf(`${A}/1`, { modifiedAt: T0 + 7 }), taskOf(`${A}/new`, { modifiedAt: T0 })];
      const { id, tasks } = await leaseOne(setup.store, setup.job);
      expect(await settle(id, [change.fetched(tasks[0]!.id, { links })])).toEqual({
        applied: true,
        accepted: 1,
      });
      expect(await counters()).toMatchObject({ accepted: 4, pending: 2, done: 2 });
      await expectBalance(setup.store, setup.job);
    });
  });
}
