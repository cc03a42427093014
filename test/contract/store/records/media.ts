import { describe, expect, test } from 'vitest';
import type { MediaRef } from '../../../../src/core/model.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  pageOf,
  T0,
  taskOf,
  tasksOf,
  traceOf,
} from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

const DAY = 86_400_000;
const IMAGE = `${B}/i.png`;
const ref = (digit: string, member: string | null = null): MediaRef => ({
  key: `media/${digit}.png`,
  md5: digit.repeat(32),
  member,
});
const object = (media: MediaRef) =>
  pageOf({ contentType: 'image/png', bytes: 80_000, sha256: 'cd'.repeat(32), media });
/** A page that shows these: their tasks come with it as links. */
const showing = (id: number, ...urls: string[]) =>
  change.fetched(id, { links: tasksOf(...urls), shows: urls });

/** Stored objects and the pages that show them. */
export function testMedia(setup: StoreSetup): void {
  const { add, row, visit, beginPass, reopenTasks, reopen } = setup;
  const media = () => collect(setup.store.views.media(setup.job.id));

  describe('media', () => {
    test('an object is kept with its task, apart from pages', async () => {
      await enqueue(setup.store, setup.job, [taskOf(IMAGE, { meta: { sku: 7 } }), taskOf(`${A}/page`)]);
      await visit(({ id, url }) =>
        url === IMAGE
          ? change.fetched(id, {
              page: object(ref('a', 'x/0001.png')),
              trace: traceOf({ startedAt: T0 + 5 }),
            })
          : change.fetched(id),
      );
      await reopen();
      expect(await media()).toEqual([
        {
          url: IMAGE,
          key: 'media/a.png',
          member: 'x/0001.png',
          bytes: 80_000,
          md5: 'a'.repeat(32),
          sha256: 'cd'.repeat(32),
          contentType: 'image/png',
          fetchedAt: new Date(T0 + 5).toISOString(),
          referrers: [],
          meta: { sku: 7 },
        },
      ]);
      expect(await row(IMAGE)).toMatchObject({ media: ref('a', 'x/0001.png'), archive: null });
      expect(await row(`${A}/page`)).toMatchObject({ media: null });
      expect(await collect(setup.store.views.media((await createJob(setup.store, 'other')).id))).toEqual([]);
    });

    test('the same bytes under two URLs are one object with two rows', async () => {
      await add(IMAGE, `${A}/copy.png`);
      await visit(({ id }) => change.fetched(id, { page: object(ref('a')) }));
      const rows = await media();
      expect(rows.map(({ url, key }) => `${url} ${key}`).sort()).toEqual([
        `${A}/copy.png media/a.png`,
        `${IMAGE} media/a.png`,
      ]);
    });

    test('an object that changed has a row for each state; one that did not has the one it had', async () => {
      await add(IMAGE);
      const fetched = (digit: string, startedAt: number) => (task: { id: number }) =>
        change.fetched(task.id, { page: object(ref(digit)), trace: traceOf({ startedAt }) });
      const nextPass = async (pass: number) => {
        await beginPass(T0 + pass * DAY);
        await reopenTasks(T0 + pass * DAY);
      };
      await visit(fetched('a', T0));
      await nextPass(1);
      await visit(({ id }) => change.unchanged(id));
      expect(await row(IMAGE)).toMatchObject({ state: 'unchanged', media: ref('a'), bytes: 80_000 });
      expect(await media()).toHaveLength(1);
      await nextPass(2);
      await visit(fetched('b', T0 + 2 * DAY));
      expect(await row(IMAGE)).toMatchObject({ state: 'done', media: ref('b') });
      expect((await media()).map(({ key }) => key)).toEqual(['media/a.png', 'media/b.png']);
      await nextPass(3);
      await visit(fetched('a', T0 + 3 * DAY));
      const rows = await media();
      expect(rows.map(({ key }) => key).sort()).toEqual(['media/a.png', 'media/b.png']);
      expect(rows.find(({ key }) => key === 'media/a.png')?.fetchedAt).toBe(
        new Date(T0 + 3 * DAY).toISOString(),
      );
      await nextPass(4);
      await visit(({ id }) => change.dead(id));
      expect(await row(IMAGE)).toMatchObject({ state: 'dead', media: ref('a') });
    });

    test('every page that shows an object is named, also one that came later or before', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/none`);
      await visit(({ id, url }) =>
        url.endsWith('none') ? change.fetched(id) : showing(id, IMAGE, `${B}/j.png`),
      );
      await visit(({ id, url }) => change.fetched(id, { page: object(ref(url === IMAGE ? 'a' : 'b')) }));
      await add(`${A}/3`);
      await visit(({ id }) => showing(id, IMAGE, IMAGE));
      await reopen();
      const referrers = new Map((await media()).map((each) => [each.url, each.referrers.sort()]));
      expect(referrers.get(IMAGE)).toEqual([`${A}/1`, `${A}/2`, `${A}/3`]);
      expect(referrers.get(`${B}/j.png`)).toEqual([`${A}/1`, `${A}/2`]);
      await expectBalance(setup.store, setup.job);
    });

    test('a page that is read again shows what it shows now; one that is unchanged, what it did', async () => {
      await add(`${A}/1`, `${A}/2`);
      await visit(({ id }) => showing(id, IMAGE, `${B}/j.png`));
      await visit(({ id, url }) => change.fetched(id, { page: object(ref(url === IMAGE ? 'a' : 'b')) }));
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      await visit(({ id, url }) => (url === `${A}/1` ? showing(id, `${B}/j.png`) : change.unchanged(id)));
      const referrers = new Map((await media()).map((each) => [each.url, each.referrers]));
      expect(referrers.get(IMAGE)).toEqual([`${A}/2`]);
      expect(referrers.get(`${B}/j.png`)?.sort()).toEqual([`${A}/1`, `${A}/2`]);
    });

    test('an object that moved to a URL of its own is shown by the pages that show the old one', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => showing(id, IMAGE));
      const moved = `${B}/moved.png`;
      await visit(({ id }) => change.moved(id, moved, { to: 'done', moveTo: null, links: tasksOf(moved) }));
      await visit(({ id }) => change.fetched(id, { page: object(ref('a')) }));
      await add(`${A}/2`);
      await visit(({ id }) => showing(id, IMAGE));
      const [only] = await media();
      expect(only).toMatchObject({ url: moved });
      expect(only?.referrers.sort()).toEqual([`${A}/1`, `${A}/2`]);
      await expectBalance(setup.store, setup.job);
    });

    test('what a page shows without it ever becoming a task is no object', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { shows: [`${B}/unknown.png`] }));
      expect(await media()).toEqual([]);
    });
  });
}
