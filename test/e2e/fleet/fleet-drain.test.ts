import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import {
  FLEET_KEY,
  jsonLines,
  type Started,
  seine,
  startSeine,
  temporaryFolder,
} from '../../support/seine-process.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { startRedis } from '../../support/servers/services.ts';

const SOON = { timeout: 60_000, interval: 50 };
const folder = temporaryFolder();
const started: Started[] = [];

afterEach(async () => {
  for (const { killTree } of started.splice(0)) await killTree();
});
afterAll(() => folder.remove());

/** Pages whose answers wait until they are released: who has one of them is busy until then. */
async function startHeldSite(pages: number) {
  const paths: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const site = createServer(async (request, response) => {
    paths.push(request.url!);
    await released;
    response.writeHead(200, { 'content-type': 'text/html' }).end('page');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const close = () => {
    release();
    site.closeAllConnections();
    site.close();
  };
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  const urls = Array.from({ length: pages }, (_, at) => `${origin}/p${at}`);
  return { urls, paths, release, close };
}

interface WorkerRow {
  worker: string;
  state: string;
  can_drain: boolean;
  batches: number;
  batches_done: number;
  tasks: number;
  version: string;
}

async function call<T>(
  server: ApiServer,
  method: string,
  path: string,
): Promise<{ status: number; body: T }> {
  const answer = await fetch(`${server.url}/api/v1${path}`, { method });
  return { status: answer.status, body: (await answer.json()) as T };
}

const workersOf = async (server: ApiServer) =>
  (await call<{ workers: WorkerRow[] }>(server, 'GET', '/workers')).body.workers;

test('a worker that is drained over the API finishes its batches and exits, and no page is requested twice', async () => {
  const PAGES = 60;
  const redis = await startRedis({ own: true });
  const site = await startHeldSite(PAGES);
  const dir = join(folder.path, 'served');
  const url = redis.url.replace('redis://', 'bullmq://');
  const startWorker = () => {
    const place = ['--dispatch', url, '--blobs', dir, '--workers', '1', '--allow-private'];
    const worker = startSeine(['worker', ...place]);
    started.push(worker);
    return worker;
  };
  const server = await openApiServer({ dir, queue: { url: redis.url, fleetKeys: [FLEET_KEY] } });
  try {
    const processes = [startWorker(), startWorker()];
    // Also while no job runs.
    await vi.waitFor(async () => expect(await workersOf(server)).toHaveLength(2), SOON);
    const spec = { name: 'site', sources: site.urls, allowPrivate: true };
    const answer = await fetch(`${server.url}/api/v1/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...spec, politeness: { rate: 'max', robots: false } }),
    });
    const { job_id: id } = (await answer.json()) as { job_id: string };
    const busy = await vi.waitFor(async () => {
      const found = (await workersOf(server)).find(({ batches }) => batches > 0);
      return found ?? Promise.reject(new Error('no worker has a batch'));
    }, SOON);
    expect(busy).toMatchObject({ state: 'live', can_drain: true, version: expect.stringMatching(/^\d/) });

    const drained = await call<{ worker: string }>(server, 'POST', `/workers/${busy.worker}/drain`);
    expect(drained).toMatchObject({ status: 202, body: { worker: busy.worker } });
    await vi.waitFor(
      async () => expect((await workersOf(server)).map(({ state }) => state)).toContain('draining'),
      SOON,
    );
    site.release();
    const first = await Promise.race(
      processes.map(async (worker) => ({ worker, end: await worker.finished })),
    );
    expect(first.end.code, first.end.stderr).toBe(0);
    expect(first.end.stderr).toMatch(new RegExp(`${busy.worker} has finished its batches and exits`));
    await vi.waitFor(
      async () =>
        expect((await call<{ status: string }>(server, 'GET', `/jobs/${id}`)).body.status).toBe('completed'),
      SOON,
    );
    expect(site.paths.toSorted()).toEqual([...new Set(site.paths)].sort());
    expect(site.paths).toHaveLength(PAGES);
    expect((await call(server, 'POST', '/workers/nobody/drain')).status).toBe(404);

    const [other] = (await workersOf(server)).filter(({ state }) => state === 'live');
    const shown = await seine(['workers', '--dispatch', url, '--json']);
    expect(jsonLines(shown.stdout)).toMatchObject([{ worker: other!.worker, state: 'live', slots: 8 }]);
    const ended = await seine(['drain', other!.worker, '--dispatch', url, '--wait']);
    expect(ended.stdout).toContain(`${other!.worker} has ended`);
    const unknown = await seine(['drain', other!.worker, '--dispatch', url]);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('no live worker')]);
  } finally {
    await server.close();
    site.close();
    await redis.stop();
  }
  // What is known of them after the run: rows of the folder.
  const past = jsonLines<{ kind: string; batchesDone: number }>(
    (await seine(['workers', '--past', '--dir', dir, '--json'])).stdout,
  );
  expect(past.every(({ kind }) => kind === 'http')).toBe(true);
});
