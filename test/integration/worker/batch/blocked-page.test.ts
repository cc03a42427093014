import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorkerTools } from '../../../../src/app/worker-app.ts';
import { type Batch, type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import type { FetchResult } from '../../../../src/ports/fetcher.ts';
import { processBatch } from '../../../../src/worker/batch/process-batch.ts';
import { openScriptRenderer, PNG } from '../../../support/browser/script-renderer.ts';
import { specOf } from '../../../support/fixtures.ts';
import { temporaryFolder } from '../../../support/seine-process.ts';

const folder = temporaryFolder();
let tools: Awaited<ReturnType<typeof openWorkerTools>>;

beforeAll(async () => {
  tools = await openWorkerTools({ name: 'test', blobs: folder.path, sync: false });
});
afterAll(async () => {
  await tools.close();
  folder.remove();
});

/** The blobs, of which pictures and the like are stored when the test says so. */
function slow(blobs: Blobs, until: Promise<unknown>): Blobs {
  return new Proxy(blobs, {
    get(target, name) {
      if (name === 'put') return (key: string, bytes: Uint8Array) => until.then(() => target.put(key, bytes));
      return target[name as keyof Blobs].bind(target);
    },
  });
}

test('a blocked page is in the archive of the part that has its outcome, also where its snapshot is stored late', async () => {
  const body = Buffer.from('<title>Just a moment...</title><p>Checking your browser</p>');
  const blocked: FetchResult = {
    ...{ kind: 'response', status: 403, statusText: '', wireBytes: body.length, wireBody: body, body },
    rawHeaders: ['Content-Type', 'text/html', 'cf-mitigated', 'challenge'],
    rendered: { shots: [{ kind: 'screenshot', type: 'image/png', bytes: PNG }], captured: {} },
  };
  const text = Buffer.from('<h1>A page</h1>');
  const page: FetchResult = {
    ...{ kind: 'response', status: 200, statusText: '', wireBytes: text.length, wireBody: text, body: text },
    rawHeaders: ['Content-Type', 'text/html'],
    rendered: { shots: [], captured: {} },
  };
  const now = tools.clock.now();
  const host = 'a.example';
  const batch: Batch = {
    ...{ version: WIRE_VERSION, id: 1, needs: 'browser', budgetMs: 60_000, robots: [] },
    job: {
      ...{ id: 1, name: 'test', specHash: '1', bundle: null, epoch: '1' },
      spec: specOf({ politeness: { rate: 'max', robots: false } }),
    },
    permits: [{ host, startAt: now, endAt: now + 60_000, gapMs: 0, parallel: 2 }],
    tasks: ['/blocked', '/page'].map((path, index) => ({
      ...{
        id: index + 1,
        url: `https://${host}${path}`,
        permit: 0,
        depth: 0,
        route: null,
        attempt: 1,
        hops: 0,
      },
      ...{ meta: null, lastVisit: null },
      fetchMethod: { fetcher: 'browser', level: 0, headers: 'full', identity: null, pool: null },
    })),
    ...{ archiveKey: 'warc/1', packKey: 'shards/1' },
  };
  const parts: Report[] = [];
  const part = Promise.withResolvers<void>();
  const renderer = openScriptRenderer(({ url }) => (url.endsWith('/blocked') ? blocked : page));
  const own = { ...tools, blobs: slow(tools.blobs, part.promise), fetcherOf: async () => renderer };
  const onPart = (one: Report) => {
    parts.push(one);
    if (one.outcomes.length > 0) part.resolve();
  };
  parts.push(await processBatch(batch, own, { onPart }));
  const of = (taskId: number) =>
    parts.find(({ outcomes }) => outcomes.some((outcome) => outcome.taskId === taskId))!;
  const WARC = expect.stringMatching(/^warc\/1-\d\.warc\.gz$/);
  expect(of(2)).toMatchObject({ final: false, archive: { key: WARC } });
  expect(of(1)).toMatchObject({
    ...{ final: true, archive: { key: WARC } },
    outcomes: [{ kind: 'failed', code: 'captcha', trace: { shots: [{ kind: 'snapshot' }, {}] } }],
  });
});
