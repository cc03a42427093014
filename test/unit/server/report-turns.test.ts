import { expect, test } from 'vitest';
import { ReportTurns } from '../../../src/server/report-turns.ts';

/** Reports that leave a mark when they are taken; time and the turns of the event loop are passed by hand. */
function open() {
  let now = 0;
  let timers: { at: number; run: () => void }[] = [];
  const turns: (() => void)[] = [];
  const clock = {
    now: () => now,
    after: (ms: number, run: () => void) => {
      const timer = { at: now + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((each) => each !== timer);
      };
    },
  };
  const reports = new ReportTurns({ clock, afterArrivals: (run) => turns.push(run) });
  const taken: string[] = [];
  const held: string[] = [];
  return {
    reports,
    taken,
    held,
    report(name: string, priority: number) {
      const turn = reports.turn(priority, () => void held.push(name));
      if (turn) void turn.then(() => taken.push(name));
      else taken.push(name);
    },
    async turn() {
      for (const run of turns.splice(0)) run();
      await Promise.resolve();
    },
    async wait(ms: number) {
      now += ms;
      for (const { at, run } of [...timers]) if (at <= now) run();
      await Promise.resolve();
    },
  };
}

test('one report is taken in each turn of the event loop, the most urgent first', async () => {
  const { report, taken, turn } = open();
  for (const name of ['a', 'b', 'c']) report(name, 0);
  report('urgent', 10);
  expect(taken).toEqual(['a']);
  await turn();
  expect(taken).toEqual(['a', 'urgent']);
  await turn();
  await turn();
  expect(taken).toEqual(['a', 'urgent', 'b', 'c']);
  report('d', 0);
  expect(taken).toHaveLength(4);
  await turn();
  await turn();
  report('e', 0);
  expect(taken.slice(4)).toEqual(['d', 'e']);
});

test('what arrives together is taken together', async () => {
  const { reports, taken, turn } = open();
  for (const name of ['a', 'b']) reports.afterArrivals(() => taken.push(name));
  expect(taken).toEqual([]);
  await turn();
  expect(taken).toEqual(['a', 'b']);
  reports.afterArrivals(() => taken.push('c'));
  await turn();
  expect(taken).toEqual(['a', 'b', 'c']);
});

test('reports of others wait while an urgent job begins, and are taken when it is done', async () => {
  const { reports, report, taken, turn } = open();
  reports.beginHeadStart(10);
  report('plain', 0);
  report('urgent', 10);
  await turn();
  expect(taken).toEqual(['urgent']);
  reports.endHeadStart(0);
  expect(taken).toEqual(['urgent']);
  reports.endHeadStart(10);
  await turn();
  expect(taken).toEqual(['urgent', 'plain']);
});

test('however many urgent jobs begin, others wait for a tenth of the time', async () => {
  const { reports, report, taken, turn, wait } = open();
  let stood = 0;
  for (let ms = 0; ms < 60_000; ms += 10) {
    reports.beginHeadStart(10);
    const before = taken.length;
    report('plain', 0);
    await turn();
    if (taken.length === before) stood += 10;
    await wait(10);
    await turn();
  }
  expect(stood).toBeGreaterThan(3_000);
  expect(stood).toBeLessThan(8_000);
});

test('a report is told once that it waits for a head start, whichever of them comes first', async () => {
  const { reports, report, held, taken, turn } = open();
  report('taken at once', 0);
  report('before', 0);
  expect(held).toEqual([]);
  reports.beginHeadStart(5);
  expect(held).toEqual(['before']);
  report('after', 0);
  report('of the urgent job', 5);
  reports.beginHeadStart(9);
  expect(held).toEqual(['before', 'after', 'of the urgent job']);
  reports.endHeadStart(9);
  for (let nth = 0; nth < 4; nth++) await turn();
  expect(taken).toEqual(['taken at once', 'of the urgent job', 'before', 'after']);
  expect(held).toHaveLength(3);
});
