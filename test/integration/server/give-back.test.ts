import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { JobRunner } from '../../../src/server/job-runner.ts';
import { createJob, enqueue, taskOf } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

const PARALLEL = 4;
const CRAWLED = 40;
const URGENT = 6;

/** A site that answers pages of the crawl when it is told to, and all others at once. */
async function openSite() {
  const asked: string[] = [];
  const held: ServerResponse[] = [];
  let most = 0;
  let underWay = 0;
  let isHolding = true;
  const answer = (response: ServerResponse) =>
    response.setHeader('content-type', 'text/html').end('<p>A page of the site.</p>');
  const server = createServer(({ url }, response) => {
    asked.push(url!);
    most = Math.max(most, ++underWay);
    response.on('close', () => underWay--);
    if (isHolding && url!.startsWith('/crawl/')) held.push(response);
    else answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    most: () => most,
    /** Answers what is held now; what comes later is held again. */
    answerHeld: () => held.splice(0).map(answer).length,
    goOn: () => {
      isHolding = false;
      for (const response of held.splice(0)) answer(response);
    },
  };
}

async function openRunner() {
  const { path, remove } = temporaryFolder();
  onTestFinished(remove);
  const told: string[] = [];
  const note = (message: string) => void told.push(message);
  const logger = { debug: note, info: note, warn: note, error: note };
  const settings = { dir: path, sync: 'normal' as const, workers: 1, jobEnvironment: {}, logger };
  const folder = await openFolder(settings, { create: true, toWork: true });
  onTestFinished(() => folder.close());
  const onBroken = (error: unknown) => {
    throw error;
  };
  const runner = new JobRunner({ folder, settings, onEnd() {}, onBroken });
  onTestFinished(() => runner.close());
  return { runner, store: folder.store, told };
}

test('an urgent job gets the host of a crawl, and what the crawl had not begun is done later, once', async () => {
  const site = await openSite();
  const { runner, store, told } = await openRunner();
  const start = async (name: string, { count, priority }: { count: number; priority: number }) => {
    const politeness = { rate: 'max', adaptive: false, robots: false, parallel: PARALLEL } as const;
    const urls = Array.from({ length: count }, (_, at) => `${site.origin}/${name}/${at}`);
    const sources = urls.slice(0, 1);
    const job = await createJob(store, name, { sources, politeness, priority, allowPrivate: true });
    await enqueue(
      store,
      job,
      urls.map((url) => taskOf(url)),
    );
    runner.start(await store.jobs.get(job.id));
    return job.id;
  };
  const stateOf = async (id: number) => (await store.jobs.get(id)).state;
  const crawl = await start('crawl', { count: CRAWLED, priority: 0 });
  await expect.poll(() => site.asked.length).toBe(PARALLEL);
  const urgent = await start('urgent', { count: URGENT, priority: 10 });
  await expect.poll(() => told.filter((line) => line === 'hosts have room for other batches').length).toBe(2);
  // The host has as many requests under way as it allows: the urgent job is next, as soon as they are answered.
  expect(site.asked).toHaveLength(PARALLEL);
  expect(site.answerHeld()).toBe(PARALLEL);
  const firstUrgent = () => site.asked.findIndex((path) => path.startsWith('/urgent/'));
  await expect.poll(firstUrgent).toBeGreaterThan(0);
  expect(firstUrgent()).toBeLessThan(CRAWLED / 2);
  site.goOn();
  await expect.poll(() => stateOf(urgent)).toBe('done');
  await expect.poll(() => stateOf(crawl)).toBe('done');
  const counters = await store.jobs.counters(crawl);
  expect(counters).toMatchObject({ accepted: CRAWLED, done: CRAWLED, attempted: CRAWLED, dead: 0 });
  expect(site.asked.filter((path) => path.startsWith('/crawl/')).toSorted()).toEqual(
    Array.from({ length: CRAWLED }, (_, at) => `/crawl/${at}`).toSorted(),
  );
  expect(site.most()).toBeLessThanOrEqual(PARALLEL);
});
