import { describe, expect, test } from 'vitest';
import type { ShotRef } from '../../../../src/core/model.ts';
import { change, collect, createJob, T0, traceOf } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

const DAY = 86_400_000;
const shot = (digit: string, kind: ShotRef['kind'] = 'screenshot'): ShotRef => ({
  kind,
  key: `media/${digit}.png`,
  type: 'image/png',
  bytes: 1_000,
});

/** Pictures that a browser made of pages. */
export function testShots(setup: StoreSetup): void {
  const { add, row, visit, beginPass, reopenTasks, reopen } = setup;
  const shots = (since?: number) =>
    collect(setup.store.views.shots(setup.job.id, since === undefined ? {} : { since }));

  describe('shots', () => {
    test('pictures are kept with the attempt and shown with the task, newest first', async () => {
      await add(`${A}/1`, `${A}/2`, `${A}/3`);
      await visit(({ id, url }) =>
        url === `${A}/3`
          ? change.fetched(id)
          : change.fetched(id, {
              trace: traceOf({
                startedAt: T0 + Number(url.at(-1)),
                httpStatus: 200,
                shots: [shot(url.at(-1)!), shot(`p${url.at(-1)}`, 'pdf')],
              }),
            }),
      );
      await reopen();
      expect((await row(`${A}/1`))?.shots).toEqual([shot('1'), shot('p1', 'pdf')]);
      expect((await row(`${A}/3`))?.shots).toEqual([]);
      const rows = await shots();
      expect(rows.map(({ url, kind }) => `${url.at(-1)} ${kind}`).sort()).toEqual([
        '1 pdf',
        '1 screenshot',
        '2 pdf',
        '2 screenshot',
      ]);
      expect(rows.find(({ url }) => url === `${A}/1`)).toEqual({
        ...shot('1'),
        url: `${A}/1`,
        outcome: 'fetched',
        httpStatus: 200,
        failureCode: null,
        route: null,
        takenAt: new Date(T0 + 1).toISOString(),
        latest: true,
      });
      expect(await shots(T0 + 2)).toHaveLength(2);
      expect(await collect(setup.store.views.shots((await createJob(setup.store, 'other')).id))).toEqual([]);
    });

    test('a snapshot of a failure stays with its attempt when the page is got later', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.again(id, null, { trace: traceOf({ shots: [shot('f', 'snapshot')] }) }));
      await visit(({ id }) => change.fetched(id, { trace: traceOf({ shots: [shot('1')] }) }));
      expect((await shots()).map(({ kind, outcome, latest }) => ({ kind, outcome, latest }))).toEqual([
        { kind: 'screenshot', outcome: 'fetched', latest: true },
        { kind: 'snapshot', outcome: 'failed', latest: false },
      ]);
    });

    test('a later visit that brings no picture leaves the page the one it had', async () => {
      await add(`${A}/1`);
      await visit(({ id }) => change.fetched(id, { trace: traceOf({ shots: [shot('1')] }) }));
      await beginPass(T0 + DAY);
      await reopenTasks(T0 + DAY);
      await visit(({ id }) => change.unchanged(id));
      expect((await row(`${A}/1`))?.shots).toEqual([shot('1')]);
    });
  });
}
