import { describe, expect, test } from 'vitest';
import { zeroCounters } from '../../../../src/core/model.ts';
import { createJob, enqueue, leaseOne, T0, taskOf, tasksOf } from '../../../support/fixtures.ts';
import { A, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Tasks come in, each URL once. */
export function testEnqueue(setup: StoreSetup): void {
  const { add, hostsDue, row, counters, reopen } = setup;

  describe('enqueue', () => {
    test('each URL once: within a call, over calls and after a restart', async () => {
      expect(await add(`${A}/1`, `${A}/2`, `${A}/1`)).toEqual({ accepted: 2, duplicates: 1, dropped: 0 });
      expect(await add(`${A}/2`, `${A}/3`)).toEqual({ accepted: 1, duplicates: 1, dropped: 0 });
      await reopen();
      expect(await add(`${A}/1`, `${A}/4`, `${A}/3`)).toEqual({ accepted: 1, duplicates: 2, dropped: 0 });
      expect(await counters()).toMatchObject({ accepted: 4, pending: 4, duplicates: 4 });
      await expectBalance(setup.store, setup.job);
    });

    test('a URL is what it is to the letter', async () => {
      const urls = [`${A}/x`, `${A}/X`, `${A}/x/`, `${A}/x?`, `${A}/x?a`, `${A}/x%20`, 'http://a.example/x'];
      expect((await add(...urls)).accepted).toBe(urls.length);
    });

    test('each job has its own URLs', async () => {
      const other = await createJob(setup.store, 'other');
      await add(`${A}/1`, `${A}/2`);
      expect(await enqueue(setup.store, other, tasksOf(`${A}/1`, `${A}/3`))).toMatchObject({
        accepted: 2,
        duplicates: 0,
      });
      expect(await setup.store.frontier.knows(setup.job.id, `${A}/3`)).toBe(false);
      expect(await setup.store.frontier.knows(other.id, `${A}/3`)).toBe(true);
      expect(await setup.store.views.task(setup.job.id, `${A}/3`)).toBeNull();
      await expectBalance(setup.store, setup.job, other);
    });

    test('a task has everything it was given', async () => {
      const meta = { sku: 'ü"1', nested: { list: [1, null, '€'] }, __proto__x: true };
      await enqueue(setup.store, setup.job, [
        taskOf(`${A}/1`, { depth: 3, priority: -7, route: 'p', meta, hops: 2 }),
      ]);
      expect(await row(`${A}/1`)).toEqual({
        url: `${A}/1`,
        state: 'pending',
        host: 'a.example',
        depth: 3,
        priority: -7,
        route: 'p',
        meta,
        httpStatus: null,
        failureCode: null,
        failureDetail: null,
        attempts: 0,
        bytes: null,
        sha256: null,
        contentType: null,
        archive: null,
        media: null,
        robotsTags: null,
        shots: [],
        redirectTo: null,
        fetchedAt: null,
        revisitSeconds: null,
      });
      const { tasks } = await leaseOne(setup.store, setup.job);
      expect(tasks).toMatchObject([{ url: `${A}/1`, depth: 3, route: 'p', meta, hops: 2, attempt: 1 }]);
    });

    test('twenty thousand URLs in uneven calls stay exact', async () => {
      const urls = Array.from({ length: 20_000 }, (_, index) => `https://h${index % 97}.example/p/${index}`);
      const seen = new Set<string>();
      for (let at = 0, size = 1; at < urls.length; at += size, size = (size * 3) % 4_099) {
        const piece = urls.slice(Math.max(0, at - 50), at + size);
        const fresh = new Set(piece.filter((url) => !seen.has(url)));
        expect(await add(...piece)).toMatchObject({
          accepted: fresh.size,
          duplicates: piece.length - fresh.size,
        });
        for (const url of fresh) seen.add(url);
      }
      await reopen();
      expect(await add(...urls)).toEqual({
        accepted: 20_000 - seen.size,
        duplicates: seen.size,
        dropped: 0,
      });
      expect(await setup.store.frontier.knows(setup.job.id, urls[777]!)).toBe(true);
      expect(await setup.store.frontier.knows(setup.job.id, `${urls[777]}x`)).toBe(false);
      await expectBalance(setup.store, setup.job);
    });

    test('a template takes no more than its budget, over calls and restarts; sources are not limited', async () => {
      const link = (n: number, template = 't1') => taskOf(`${A}/cal/${template}/${n}`, { template });
      const many = Array.from({ length: 5 }, (_, n) => link(n));
      expect(await enqueue(setup.store, setup.job, many, 3)).toEqual({
        accepted: 3,
        duplicates: 0,
        dropped: 2,
      });
      await reopen();
      const more = [link(0), link(4), link(0, 't2'), taskOf(`${A}/cal/t1/9`)];
      expect(await enqueue(setup.store, setup.job, more, 3)).toEqual({
        accepted: 2,
        duplicates: 1,
        dropped: 1,
      });
      expect(await counters()).toMatchObject({ accepted: 5, dropped: 3, duplicates: 1 });
      expect(await setup.store.frontier.knows(setup.job.id, `${A}/cal/t1/4`)).toBe(false);
      expect(await enqueue(setup.store, setup.job, [link(4)], null)).toMatchObject({ accepted: 1 });
      await expectBalance(setup.store, setup.job);
    });

    test('the position of a source is kept with its rows', async () => {
      expect(await setup.store.jobs.sources(setup.job.id)).toEqual([]);
      const put = (
        source: number,
        position: string | null,
        done: boolean,
        rows: number,
        rejected: number,
        url: string,
      ) =>
        setup.store.frontier.enqueue(setup.job.id, tasksOf(url), {
          now: T0,
          perTemplateMax: null,
          source: { source, position, done, rows, rejected },
        });
      await put(1, '{"offset":10}', false, 5, 2, `${A}/1`);
      await put(0, null, true, 1, 1, `${A}/2`);
      await put(1, '{"offset":20}', true, 9, 3, `${A}/3`);
      await reopen();
      expect(await setup.store.jobs.sources(setup.job.id)).toEqual([
        { source: 0, position: null, done: true, rows: 1, rejected: 1 },
        { source: 1, position: '{"offset":20}', done: true, rows: 9, rejected: 3 },
      ]);
      expect(await counters()).toMatchObject({ accepted: 3, rejected: 4 });
    });

    test('an enqueue that fails leaves neither tasks nor a position, and can be done again', async () => {
      const broken = { ...taskOf(`${A}/2`), url: null as never };
      const source = { source: 0, position: '5', done: true, rows: 2, rejected: 0 };
      const options = { now: T0, perTemplateMax: null, source };
      await expect(
        setup.store.frontier.enqueue(setup.job.id, [taskOf(`${A}/1`), broken], options),
      ).rejects.toThrow();
      expect(await setup.store.jobs.sources(setup.job.id)).toEqual([]);
      expect(await counters()).toEqual(zeroCounters());
      expect(await setup.store.frontier.knows(setup.job.id, `${A}/1`)).toBe(false);
      expect(await add(`${A}/1`)).toMatchObject({ accepted: 1, duplicates: 0 });
      expect(await hostsDue()).toEqual(['a.example']);
      await expectBalance(setup.store, setup.job);
    });
  });
}
