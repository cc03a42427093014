import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';
import type { Batch, Report } from '../../src/core/batch/batch.ts';
import { WIRE_VERSION } from '../../src/core/batch/batch.ts';
import type { JobInput } from '../../src/core/job-schema/job.ts';
import { bundleKeyOf } from '../../src/job-file/load-handlers.ts';
import type { Delivery, Dispatcher } from '../../src/ports/dispatcher.ts';
import { specOf, temporaryFolder } from '../support/fixtures.ts';
import { realClock } from '../support/real-clock.ts';

/** What an operator may have; each way to a worker starts it from this process. */
const OPERATOR = {
  OPERATOR_TOKEN: 'not for jobs',
  AWS_SECRET_ACCESS_KEY: 'not for jobs',
  PGPASSWORD: 'not for jobs',
  SEINE_SECRET_SHOP: 'for jobs',
};

/** A site of a few odd pages on loopback. */
export interface Site {
  origin: string;
  host: string;
  paths: string[];
  close(): Promise<void>;
}

/** `/slow` takes twice as long: who waits for it is told from who does not, on a busy machine too. */
export const ENDS_MS = 30_000;
const SLOW_MS = 2 * ENDS_MS;

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const ANSWERS: Record<string, Answer> = {
  // undici notices it by an assertion.
  '/099': (request) => void request.socket.end('HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nhi'),
  '/slow': (_, response) => {
    const timer = setTimeout(() => response.end('late'), SLOW_MS);
    response.on('close', () => clearTimeout(timer));
  },
  '/missing': (_, response) => {
    response.statusCode = 404;
    response.end();
  },
  '/moved': (_, response) => {
    response.writeHead(302, { location: '/1' });
    response.end();
  },
  '/reset': (request) => void request.socket.destroy(),
};

export async function openSite(): Promise<Site> {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    const answer = ANSWERS[path];
    if (answer) return answer(request, response);
    response.setHeader('content-type', 'text/html');
    response.end(`<title>${path}</title><a href="/found${path}">next</a>`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin: `http://${host}`,
    host,
    paths,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface BatchDraft {
  id?: number;
  paths: string[];
  spec?: Partial<JobInput>;
  bundle?: string | null;
  budgetMs?: number;
  gapMs?: number;
}

/** A dispatcher never carries two batches of one number. */
let lastId = 100_000;

/** A batch for one host, whose permit is good for a long while. */
export function batchOf(site: Site, draft: BatchDraft): Batch {
  const { id = ++lastId, paths, bundle = null, budgetMs = 15_000, gapMs = 0 } = draft;
  // At its last attempt a page has its whole time, also one that never answers.
  const spec = specOf({ allowPrivate: true, follow: 'host', retry: { attempts: 1 }, ...draft.spec });
  const startAt = realClock.now();
  return {
    version: WIRE_VERSION,
    id,
    job: { id: 1, name: 'test', specHash: JSON.stringify([spec, bundle]), spec, bundle, epoch: 'e1' },
    needs: 'http',
    budgetMs,
    permits: [{ host: site.host, startAt, endAt: startAt + 60_000, gapMs, parallel: 4 }],
    robots: [],
    tasks: paths.map((path, index) => ({
      id: id * 1_000 + index,
      url: site.origin + path,
      permit: 0,
      depth: 0,
      route: null,
      attempt: 1,
      hops: 0,
      meta: null,
      lastVisit: null,
    })),
    archiveKey: `warc/test-1/${id}`,
    packKey: `shards/test-1/${id}`,
  };
}

/** Every part of what became of a batch, in order; the final one last. */
export async function deliver(
  dispatcher: Dispatcher,
  batch: Batch,
): Promise<{ delivery: Delivery; reports: Report[] }> {
  const reports: Report[] = [];
  const delivery = await dispatcher.dispatch(batch, (part) => reports.push(part));
  if (delivery.kind === 'report') reports.push(delivery.report);
  return { delivery, reports };
}

export function expectWhole(batch: Batch, reports: Report[]): void {
  expect(reports.at(-1)?.final).toBe(true);
  expect(reports.slice(0, -1).every((part) => !part.final)).toBe(true);
  expect(reports.every((part) => part.batchId === batch.id && part.version === WIRE_VERSION)).toBe(true);
  const settled = reports.flatMap((part) => part.outcomes.map((outcome) => outcome.taskId));
  expect(settled.sort()).toEqual(batch.tasks.map((task) => task.id).sort());
  // Otherwise the host would stay taken for ever.
  expect(reports.at(-1)!.permits.map((use) => use.finished)).toEqual(batch.permits.map(() => true));
}

/** What every Dispatcher must do, whatever carries its batches. */
export function runDispatcherContract(name: string, open: (blobsDir: string) => Promise<Dispatcher>): void {
  describe(`dispatcher: ${name}`, () => {
    let site: Site;
    let folder: Awaited<ReturnType<typeof temporaryFolder>>;
    let dispatcher: Dispatcher;
    // Starting workers takes long, so they stay for all tests.
    beforeAll(async () => {
      Object.assign(process.env, OPERATOR);
      site = await openSite();
      folder = await temporaryFolder();
      dispatcher = await open(folder.dir);
    });
    beforeEach(() => {
      site.paths.length = 0;
    });
    afterAll(async () => {
      await dispatcher.close();
      await site.close();
      await folder.remove();
    });

    const putCode = async (code: string) => {
      const blobs = await openFolderBlobs(folder.dir);
      const bytes = Buffer.from(code);
      await blobs.put(bundleKeyOf(bytes), bytes);
      await blobs.close();
      return bundleKeyOf(bytes);
    };

    test('has workers, and room for more batches than workers', () => {
      expect(dispatcher.workers).toBeGreaterThanOrEqual(1);
      expect(dispatcher.slots).toBeGreaterThanOrEqual(dispatcher.workers);
    });

    test('a batch comes back whole, with an outcome for each task and its pages stored', async () => {
      const batch = batchOf(site, { paths: ['/1', '/2', '/missing', '/moved', '/reset'] });
      const { reports } = await deliver(dispatcher, batch);
      expectWhole(batch, reports);
      const kinds = new Map(
        reports.flatMap((part) => part.outcomes).map((outcome) => [outcome.taskId % 1_000, outcome]),
      );
      expect(kinds.get(0)).toMatchObject({ kind: 'fetched', links: [{ url: `${site.origin}/found/1` }] });
      expect(kinds.get(2)).toMatchObject({ kind: 'failed', code: 'not-found' });
      expect(kinds.get(3)).toMatchObject({ kind: 'redirected', to: `${site.origin}/1` });
      expect(kinds.get(4)).toMatchObject({ kind: 'failed', code: 'reset' });
      const blobs = await openFolderBlobs(folder.dir);
      const archives = reports.flatMap(({ archive }) => archive ?? []);
      expect(archives.length).toBeGreaterThan(0);
      for (const archive of archives) expect(await blobs.read(archive.key)).toHaveLength(archive.bytes);
      await blobs.close();
      expect(reports.reduce((sum, part) => sum + part.permits[0]!.sent, 0)).toBeGreaterThanOrEqual(5);
      expect(reports.at(-1)!.worker).not.toBe('');
    });

    test('many batches at once come back each to its own', async () => {
      const batches = Array.from({ length: 12 }, (_, index) =>
        batchOf(site, { id: index + 1, paths: Array.from({ length: 5 }, (__, n) => `/b${index}/${n}`) }),
      );
      const answers = await Promise.all(batches.map((batch) => deliver(dispatcher, batch)));
      for (const [index, { reports }] of answers.entries()) expectWhole(batches[index]!, reports);
      expect(new Set(site.paths).size).toBe(60);
      expect(site.paths).toHaveLength(60);
    });

    test('a batch that takes long answers in parts', async () => {
      // The first part is due after a second or two: by then a busy machine has fetched two small pages, or else by the next.
      const batch = batchOf(site, { paths: ['/1', '/2', '/slow'], budgetMs: 6_000 });
      const { reports } = await deliver(dispatcher, batch);
      expectWhole(batch, reports);
      expect(reports.length).toBeGreaterThanOrEqual(2);
      expect(reports.map((part) => part.part)).toEqual(reports.map((_, index) => index));
      const early = reports.slice(0, -1).flatMap((part) => part.outcomes.map((outcome) => outcome.kind));
      expect(early).toEqual(['fetched', 'fetched']);
      expect(reports.at(-1)!.outcomes).toMatchObject([{ kind: 'deferred', taskId: batch.tasks[2]!.id }]);
    });

    test('when the budget is over, what is left is deferred', async () => {
      const batch = batchOf(site, { paths: ['/slow', '/slow'], budgetMs: 300 });
      const before = performance.now();
      const { reports } = await deliver(dispatcher, batch);
      expect(performance.now() - before).toBeLessThan(ENDS_MS);
      expectWhole(batch, reports);
      const kinds = reports.flatMap((part) => part.outcomes.map((outcome) => outcome.kind));
      expect(kinds).toEqual(['deferred', 'deferred']);
    });

    test('a handler that never answers costs its own task, not the batch', async () => {
      const bundle = await putCode(
        "export default { routes: [{ name: 'p', handler: () => new Promise(() => {}) }] };",
      );
      const batch = batchOf(site, {
        paths: ['/1'],
        bundle,
        budgetMs: 400,
        spec: { routes: [{ name: 'p' }] },
      });
      const answer = await within(ENDS_MS, deliver(dispatcher, batch));
      expect(answer).not.toBe('too late');
      if (answer !== 'too late') expectWhole(batch, answer.reports);
    });

    test('a handler that throws is a failure of its task', async () => {
      const bundle = await putCode(
        "export default { routes: [{ name: 'p', handler: (page) => { if (page.url.endsWith('/1')) throw new Error('boom'); return { ok: true }; } }] };",
      );
      const batch = batchOf(site, { paths: ['/1', '/2'], bundle, spec: { routes: [{ name: 'p' }] } });
      const { reports } = await deliver(dispatcher, batch);
      expectWhole(batch, reports);
      const outcomes = reports.flatMap((part) => part.outcomes);
      expect(outcomes.find((outcome) => outcome.taskId === batch.tasks[0]!.id)).toMatchObject({
        kind: 'failed',
        code: 'parse-error',
        detail: 'boom',
      });
      expect(outcomes.find((outcome) => outcome.taskId === batch.tasks[1]!.id)).toMatchObject({
        kind: 'fetched',
        records: [{ json: '{"ok":true}' }],
      });
    });

    // Closures of this process have its environment: it is their author's.
    if (name !== 'inline')
      test('code of a job sees nothing of the operator in its environment', async () => {
        const bundle = await putCode(
          "export default { routes: [{ name: 'p', handler: () => ({ all: JSON.stringify(process.env) }) }] };",
        );
        const batch = batchOf(site, { paths: ['/1'], bundle, spec: { routes: [{ name: 'p' }] } });
        const { reports } = await deliver(dispatcher, batch);
        const [outcome] = reports.flatMap((part) => part.outcomes);
        const seen = JSON.parse(
          JSON.parse((outcome as { records: { json: string }[] }).records[0]!.json).all,
        );
        expect(seen).toMatchObject({ PATH: expect.any(String), SEINE_SECRET_SHOP: 'for jobs' });
        expect(JSON.stringify(seen)).not.toContain('not for jobs');
      });

    test('code that is gone fails the tasks and gives the permits back', async () => {
      const batch = batchOf(site, {
        paths: ['/1', '/2'],
        bundle: `bundles/${'0'.repeat(64)}.mjs`,
        spec: { routes: [{ name: 'p' }] },
      });
      const { reports } = await deliver(dispatcher, batch);
      expect(reports.flatMap((part) => part.outcomes)).toMatchObject([
        { kind: 'failed', code: 'internal' },
        { kind: 'failed', code: 'internal' },
      ]);
      expectWhole(batch, reports);
      expect(site.paths).toEqual([]);
    });

    test('a drain brings everything back quickly, unfinished work as deferred; closing ends, also twice', async () => {
      const other = await open(folder.dir);
      // Their own time is far away: what ends them is the drain.
      const budgetMs = 4 * ENDS_MS;
      const batches = [1, 2, 3].map((id) =>
        batchOf(site, { id, paths: ['/slow', '/slow', '/slow'], budgetMs }),
      );
      const answers = Promise.all(batches.map((batch) => deliver(other, batch)));
      await expect.poll(() => site.paths.length).toBeGreaterThanOrEqual(4);
      const before = performance.now();
      await other.drain();
      for (const [index, { reports }] of (await answers).entries()) {
        expectWhole(batches[index]!, reports);
        const kinds = reports.flatMap((part) => part.outcomes.map((outcome) => outcome.kind));
        expect(new Set(kinds)).toEqual(new Set(['deferred']));
      }
      expect(performance.now() - before).toBeLessThan(ENDS_MS);
      const late = batchOf(site, { id: 9, paths: ['/1'] });
      const { reports } = await deliver(other, late);
      expectWhole(late, reports);
      expect(reports[0]!.outcomes).toMatchObject([{ kind: 'deferred' }]);
      const closed = other.close().then(() => other.close());
      expect(await within(ENDS_MS, closed)).not.toBe('too late');
    });
  });
}

/** What comes first: the answer or the time. */
export function within<T>(ms: number, work: Promise<T>): Promise<T | 'too late'> {
  const { promise, resolve } = Promise.withResolvers<'too late'>();
  const timer = setTimeout(resolve, ms, 'too late');
  return Promise.race([work.finally(() => clearTimeout(timer)), promise]);
}
