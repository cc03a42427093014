import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { explainJob } from '../../../src/coordinator/explain/explain-job.ts';
import { bundleKeyOf } from '../../../src/job-file/load-handlers.ts';
import { JobRunner } from '../../../src/server/job-runner.ts';
import { codeOf, enqueue, T0, taskOf } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

/** More than one thread does while it is looked at; the job is stopped then. */
const PAGES = 5_000;
/** Keeps its thread for 5 ms, and needs no core for that. */
const CODE = `const cell = new Int32Array(new SharedArrayBuffer(4));
export default { routes: [{ name: 'p', handler: () => { Atomics.wait(cell, 0, 0, 5); return { ok: 1 }; } }] };`;

async function openSite(): Promise<string> {
  const server = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<p>A page of the site.</p>'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a server starts threads for code that takes them, says why, and ends them when it is idle; no page is lost', async () => {
  const origin = await openSite();
  const { path, remove } = temporaryFolder();
  onTestFinished(remove);
  const told: string[] = [];
  const note = (message: string) => void told.push(message);
  const logger = { debug: note, info: note, warn: note, error: note };
  const threads = { min: 1, max: 2, first: 1, keepMs: 200, lookMs: 50 };
  const settings = { dir: path, sync: 'normal' as const, workers: 2, threads, jobEnvironment: {}, logger };
  const folder = await openFolder(settings, { create: true, toWork: true });
  onTestFinished(() => folder.close());
  const onBroken = (error: unknown) => {
    throw error;
  };
  const runner = new JobRunner({ folder, settings, onEnd() {}, onBroken });
  onTestFinished(() => runner.close());
  const { store, blobs } = folder;
  const code = Buffer.from(CODE);
  await blobs.put(bundleKeyOf(code), code);
  const input = {
    sources: [`${origin}/0`],
    routes: [{ name: 'p' }],
    politeness: { rate: 'max', adaptive: false, robots: false, parallel: 16 } as const,
    allowPrivate: true,
    batchSize: 10,
  };
  const name = 'computing';
  const job = await store.jobs.create({ ...codeOf(name, input), bundle: bundleKeyOf(code), name, now: T0 });
  const urls = Array.from({ length: PAGES }, (_, at) => taskOf(`${origin}/${at}`));
  await enqueue(store, job, urls);
  runner.start(await store.jobs.get(job.id));

  const threadsNow = async () => (await runner.heartbeats())[0]?.threads;
  const explained = async () => (await explainJob(store, await store.jobs.get(job.id))).decisions;
  const patience = { timeout: 60_000 };
  await expect.poll(threadsNow, patience).toBe(2);
  expect(told).toContainEqual(expect.stringMatching(/^2 threads instead of 1: /));
  await expect
    .poll(explained, patience)
    .toContainEqual(expect.objectContaining({ text: expect.stringMatching(/^2 threads instead of 1: /) }));

  await store.jobs.update(job.id, { requestedState: 'stop' });
  await expect.poll(() => runner.size, patience).toBe(0);
  await expect.poll(threadsNow, patience).toBe(1);
  expect(told).toContainEqual(expect.stringMatching(/^1 thread instead of 2: /));
  const { accepted, done, pending, leased, dead } = await store.jobs.counters(job.id);
  expect({ leased, dead, counted: done + pending }).toEqual({ leased: 0, dead: 0, counted: accepted });
});
