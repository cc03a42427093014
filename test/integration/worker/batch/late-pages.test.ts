import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorkerTools } from '../../../../src/app/worker-app.ts';
import { type Batch, type Permit, type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import { processBatch } from '../../../../src/worker/batch/process-batch.ts';
import { specOf } from '../../../support/fixtures.ts';
import { temporaryFolder } from '../../../support/seine-process.ts';

/** It gets all the time there is: no test depends on how soon its page is answered. */
const LAST = 4;

const folder = temporaryFolder();
const held = new Map<string, ServerResponse>();
let server: Server;
let host = '';
let tools: Awaited<ReturnType<typeof openWorkerTools>>;

beforeAll(async () => {
  tools = await openWorkerTools({ name: 'test', blobs: folder.path, sync: false });
  server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    if (request.url!.startsWith('/late')) held.set(request.url!, response);
    else response.end('<p>A page.</p>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await tools.close();
  folder.remove();
});

function run(id: number, paths: string[], permit: Partial<Permit>) {
  const now = tools.clock.now();
  const spec = specOf({
    allowPrivate: true,
    politeness: { rate: 'max', robots: false },
    retry: { attempts: LAST },
  });
  const batch: Batch = {
    version: WIRE_VERSION,
    id,
    job: { id: 1, name: 'test', specHash: '1', spec, bundle: null, epoch: '1' },
    needs: 'http',
    budgetMs: 60_000,
    permits: [{ host, startAt: now, endAt: now + 60_000, gapMs: 0, parallel: 4, ...permit }],
    robots: [],
    tasks: paths.map((path, index) => ({
      ...{
        id: index + 1,
        url: `http://${host}${path}`,
        permit: 0,
        depth: 0,
        route: null,
        attempt: LAST,
        hops: 0,
      },
      ...{ meta: null, lastVisit: null },
    })),
    archiveKey: `archive/${id}`,
    packKey: `media/${id}`,
  };
  const parts: Report[] = [];
  const report = processBatch(batch, tools, { onPart: (part) => void parts.push(part) });
  const late = () => parts.flatMap(({ permits }) => permits.flatMap((use) => use.underWay ?? []));
  return { parts, report, late };
}

test('what is late when nothing is left to begin is told, and again when it is half', async () => {
  // The late ones begin when the others have answered.
  const { parts, report, late } = run(1, ['/page/1', '/page/2', '/late/3', '/late/4'], { parallel: 2 });
  await expect.poll(late).toEqual([2]);
  // Nothing else is said: the pages that are done come with a later part or the report.
  expect(parts[0]!.outcomes).toEqual([]);
  held.get('/late/3')!.end('<p>A late page.</p>');
  await expect.poll(late).toEqual([2, 1]);
  held.get('/late/4')!.end('<p>A late page.</p>');
  const all = [...parts, await report];
  expect(all.at(-1)!.final).toBe(true);
  const kinds = all.flatMap(({ outcomes }) => outcomes.map(({ kind }) => kind));
  expect(kinds).toEqual(Array(4).fill('fetched'));
});

test('where no page has answered yet, what is late is told when one has', async () => {
  const since = performance.now();
  const { report, late } = run(4, ['/late/5', '/late/6'], {});
  await expect.poll(() => held.has('/late/5') && held.has('/late/6')).toBe(true);
  // Longer than the first look.
  await expect.poll(() => performance.now() - since, { timeout: 5_000 }).toBeGreaterThan(400);
  expect(late()).toEqual([]);
  held.get('/late/5')!.end('<p>A late page.</p>');
  await expect.poll(late).toEqual([1]);
  held.get('/late/6')!.end('<p>A late page.</p>');
  expect((await report).final).toBe(true);
});

test('of a host in its slow start, what is done is reported at once: else it gets nothing more', async () => {
  const { parts, report, late } = run(2, ['/page/1', '/page/2', '/page/3', '/late/4'], { answered: 0 });
  await expect
    .poll(() => parts.flatMap(({ outcomes }) => outcomes.map(({ taskId }) => taskId)))
    .toHaveLength(3);
  expect(late()).toEqual([1]);
  held.get('/late/4')!.end('<p>A late page.</p>');
  expect((await report).outcomes.map(({ taskId }) => taskId)).toEqual([4]);
});

test('of a host with a gap nothing is told: its next permit begins when this one ends', async () => {
  const { parts, report, late } = run(3, ['/page/1', '/late/2'], { gapMs: 1 });
  await expect.poll(() => held.has('/late/2')).toBe(true);
  await expect.poll(() => parts.length, { timeout: 5_000 }).toBeGreaterThan(0);
  expect(late()).toEqual([]);
  held.get('/late/2')!.end('<p>A late page.</p>');
  expect((await report).outcomes).toHaveLength(1);
});
