import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endingRuns, submitJob } from '../../../src/coordinator/jobs.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { codeOf, T0, temporaryFolder } from '../../support/fixtures.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: Store;
beforeEach(async () => {
  folder = await temporaryFolder();
  store = openSqliteStore(join(folder.dir, 'seine.db'), { sync: 'normal', checkpointThread: false });
});
afterEach(async () => {
  await store.close();
  await folder.remove();
});

let now = T0;
const submit = (input: Partial<JobInput>, more: { fresh?: boolean; bundle?: string } = {}) => {
  const { fresh = false, bundle = null } = more;
  const code = codeOf('shop', input);
  return submitJob(
    store,
    { ...code, specHash: JSON.stringify([code.spec, bundle]), bundle },
    { fresh, now: now++ },
  );
};

test('an unfinished run goes on with another pace and other limits, and says what changed', async () => {
  const first = await submit({ limits: { pages: 5 } });
  expect(first).toMatchObject({ resumed: false, changes: [], replaced: null });
  expect(await submit({ limits: { pages: 5 } })).toMatchObject({ resumed: true, changes: [] });
  const again = await submit({ limits: { pages: 50 }, politeness: { adaptive: false } });
  expect(again).toMatchObject({ job: { id: first.job.id, run: 1 }, resumed: true, replaced: null });
  expect(again.changes).toEqual([
    { field: 'limits.pages', from: 5, to: 50 },
    { field: 'politeness.adaptive', from: true, to: false },
  ]);
  const stored = await store.jobs.get(first.job.id);
  expect(stored).toMatchObject({ specHash: again.job.specHash, spec: { limits: { pages: 50 } } });
});

test('another way to scrape is a new run, which names what changed', async () => {
  const first = await submit({ limits: { depth: 1, pages: 5 } });
  const second = await submit({ limits: { depth: 2, pages: 6 }, follow: true });
  expect(second).toMatchObject({
    job: { run: 2 },
    resumed: false,
    changes: [],
    replaced: { job: { id: first.job.id } },
  });
  expect(second.replaced?.changes.sort()).toEqual(['follow', 'limits.depth']);
  const third = await submit({ limits: { depth: 2, pages: 6 }, follow: true }, { bundle: 'bundles/1.mjs' });
  expect(third).toMatchObject({ job: { run: 3 }, replaced: { changes: ['the code of the job file'] } });
});

test('a run that has ended, or is not wanted, is not continued and not mentioned', async () => {
  const { job } = await submit({});
  expect(await submit({ limits: { pages: 3 } }, { fresh: true })).toMatchObject({
    job: { run: 2 },
    replaced: null,
  });
  await store.jobs.update(job.id + 1, { state: 'done' });
  expect(await submit({ follow: true })).toMatchObject({ job: { run: 3 }, replaced: null });
});

test('a run that another one replaces is stopped, and one that is started on purpose leaves it alone', async () => {
  const first = await submit({});
  await submit({ limits: { pages: 3 } }, { fresh: true });
  expect(await store.jobs.get(first.job.id)).toMatchObject({ state: 'running', requestedState: 'run' });
  const third = await submit({ follow: true, keepOpen: true });
  const [second, other] = [third.replaced!.job.id, third.job.id];
  expect(await store.jobs.get(second)).toMatchObject({ state: 'running', requestedState: 'stop' });
  const running = await store.jobs.running();
  expect([...endingRuns(running)]).toEqual([['shop', 2]]);

  // One that waits for more URLs has no coordinator that could end it.
  await store.jobs.update(other, { state: 'waiting' });
  await submit({ limits: { depth: 2 } });
  expect(await store.jobs.get(other)).toMatchObject({ state: 'stopped', endedAt: now - 1 });
});
