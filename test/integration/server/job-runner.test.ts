import { expect, onTestFinished, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { JobRunner } from '../../../src/server/job-runner.ts';
import { createJob } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

// A request that is sent again, or that adds nothing new, starts a job that is over: its end was told already.
test.each(['done', 'cancelled'] as const)('a job that is %s is not begun again', async (state) => {
  const { path, remove } = temporaryFolder();
  onTestFinished(remove);
  const note = () => {};
  const logger = { info: note, warn: note, error: note };
  const settings = { dir: path, sync: 'normal' as const, workers: 1, jobEnvironment: {}, logger };
  const folder = await openFolder(settings, { create: true, toWork: true });
  onTestFinished(() => folder.close());
  const ends: number[] = [];
  const onBroken = (error: unknown) => {
    throw error;
  };
  const runner = new JobRunner({ folder, settings, onEnd: ({ id }) => ends.push(id), onBroken });
  const job = await createJob(folder.store, 'shop');
  await folder.store.jobs.update(job.id, { state, endedAt: 1_000 });
  // As it was before it ended, as for a caller that has held it for a while.
  runner.start(job);
  expect(runner.size).toBe(1);
  await expect.poll(() => runner.size).toBe(0);
  expect(await folder.store.jobs.get(job.id)).toMatchObject({ state, endedAt: 1_000 });
  expect(ends).toEqual([]);
  await runner.close();
});
