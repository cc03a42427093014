import { expect, test } from 'vitest';
import { BrowserSlots } from '../../../src/coordinator/browser-slots.ts';
import { makeBatch, type OpenBatch } from '../../../src/coordinator/plan/open-batch.ts';
import { OpenBatches } from '../../../src/coordinator/run-state.ts';
import { batchTaskOf, jobOf } from '../../support/coordinator/batches.ts';
import { T0 } from '../../support/fixtures.ts';

/** A batch with one page for a browser, and as many without as are asked for. */
function batchOf(id: number, plain = 0): OpenBatch {
  const permit = { host: 'a.example', startAt: T0, endAt: T0, gapMs: 0, parallel: 1 };
  const tasks = Array.from({ length: 1 + plain }, (_, index) => {
    const { permit: _permit, ...task } = batchTaskOf(id * 10 + index, `https://a.example/${id}/${index}`);
    return { ...task, hostId: 1 };
  });
  const grants = [{ hostId: 1, count: tasks.length, nextAt: T0, permit }];
  const open = makeBatch(jobOf(), grants, { id, tasks }, { budgetMs: 1, epoch: '', robots: [] });
  open.batch.needs = 'browser';
  open.batch.tasks[0]!.fetchMethod = {
    ...{ level: 0, fetcher: 'browser', headers: 'full', identity: null, pool: null },
  };
  return open;
}

function setup(browser: number | null) {
  const slots = { browser: browser ?? 0 };
  const warnings: string[] = [];
  const logger = { warn: (text: string) => void warnings.push(text) };
  const time = { now: T0 };
  const clock = { now: () => time.now };
  const batches = new OpenBatches();
  const dispatcher = browser === null ? {} : { slotsFor: () => slots.browser };
  const browserSlots = new BrowserSlots({ dispatcher, clock, logger, batches });
  return { time, batches, slots, warnings, browserSlots };
}

test('pages for a browser wait while as many batches are out as browsers can take', () => {
  const { time, batches, browserSlots } = setup(1);
  expect(browserSlots.deferBrowserTasks(batchOf(1).batch)).toEqual([]);
  batches.add(batchOf(1));
  // Those that need no browser go out, and the next batch is looked at.
  expect(browserSlots.deferBrowserTasks(batchOf(2, 2).batch)).toMatchObject([
    { kind: 'deferred', taskId: 20, until: T0 + 2_000 },
  ]);
  expect(browserSlots.isFull).toBe(false);
  expect(browserSlots.deferBrowserTasks(batchOf(3).batch)).toHaveLength(1);
  expect(browserSlots.isFull).toBe(true);
  time.now += 250;
  expect(browserSlots.isFull).toBe(false);
  time.now -= 1;
  batches.delete(1);
  expect(browserSlots.isFull).toBe(false);
});

test('where no worker has a browser, its pages come last and the run says so once; where workers do not differ, all go', () => {
  const none = setup(0);
  const [outcome] = none.browserSlots.deferBrowserTasks(batchOf(1, 1).batch);
  expect(outcome).toEqual({ kind: 'deferred', taskId: 10, until: T0 + 2_000, last: true });
  expect(none.browserSlots.deferBrowserTasks(batchOf(2).batch)).toHaveLength(1);
  expect(none.warnings).toEqual([expect.stringContaining('`seine worker --kind browser`')]);
  // Behind them may be pages that need none.
  expect(none.browserSlots.isFull).toBe(true);
  none.time.now += 50;
  expect(none.browserSlots.isFull).toBe(false);
  none.time.now += 11_950;
  expect(none.browserSlots.trouble).toBe('no worker with a browser since 12 s');
  none.slots.browser = 1;
  expect(none.browserSlots.trouble).toBeNull();
  expect(none.browserSlots.deferBrowserTasks(batchOf(3).batch)).toEqual([]);
  none.slots.browser = 0;
  none.browserSlots.deferBrowserTasks(batchOf(4).batch);
  expect(none.warnings).toHaveLength(2);
  const all = setup(null);
  for (const id of [1, 2, 3]) all.batches.add(batchOf(id));
  expect(all.browserSlots.deferBrowserTasks(batchOf(4).batch)).toEqual([]);
});
