import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import type { Job } from '../../../src/ports/store.ts';
import { JobRunner } from '../../../src/server/job-runner.ts';
import { createJob, enqueue, tasksOf } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { type PostgresServer, startPostgres } from '../../support/servers/services.ts';
import { startLinkedSite } from '../../support/sites/linked-site.ts';

let postgres: PostgresServer;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

/** What runs the jobs of a server, in a folder of its own, over the database. */
async function openRunner(dir: string, url: string) {
  const note = () => {};
  const logger = { info: note, warn: note, error: note };
  const store = { url, passwordFile: null, connections: null };
  const settings = { dir, store, sync: 'normal' as const, workers: 1, jobEnvironment: {}, logger };
  const folder = await openFolder(settings, { create: true, toWork: true });
  const onBroken = (error: unknown) => {
    throw error;
  };
  const runner = new JobRunner({ folder, settings, onEnd: note, onBroken });
  onTestFinished(async () => {
    await runner.close();
    await folder.close();
  });
  return { runner, store: folder.store };
}

async function openTwo() {
  const { path, remove } = temporaryFolder();
  const url = await postgres.createDatabase();
  onTestFinished(remove);
  return [await openRunner(join(path, 'a'), url), await openRunner(join(path, 'b'), url)] as const;
}

test('of servers that start a job at the same moment, one runs it', async () => {
  const [one, two] = await openTwo();
  const site = await startLinkedSite({ pages: 1 });
  onTestFinished(() => site.close());
  // No job is over before both servers have looked at it.
  site.hold();
  onTestFinished(() => site.release());
  const jobs: Job[] = [];
  for (const name of ['shop', 'news']) {
    const job = await createJob(one.store, name, { allowPrivate: true });
    await enqueue(one.store, job, tasksOf(`http://127.0.0.1:${site.port}/`));
    jobs.push(job);
  }
  for (const job of jobs) {
    one.runner.start(job);
    two.runner.start(job);
  }
  const runners = [one.runner, two.runner];
  const begun = () => jobs.flatMap(({ id }) => runners.filter((runner) => runner.run(id)));
  const decided = () => begun().length === one.runner.size + two.runner.size;
  await expect.poll(decided, { timeout: 60_000 }).toBe(true);
  expect(begun()).toHaveLength(jobs.length);
  for (const { id } of jobs) expect(await one.store.jobs.atWork(id)).toBe(1);
});
