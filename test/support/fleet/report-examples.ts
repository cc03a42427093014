import { type Batch, type Report, WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { Discovered, Outcome } from '../../../src/core/batch/outcome.ts';
import { pageOf, recordOf, T0, traceOf } from '../fixtures.ts';

/** A valid report on any batch, with something in every field: what tests change bit by bit. */
export function reportOn(batch: Batch, worker = 'w/thread-1'): Report {
  const archive = { key: `${batch.archiveKey}-0a1b2c3d-0.warc.gz`, bytes: 10_000 };
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: true,
    worker,
    startedAt: T0,
    durationMs: 12.5,
    permits: batch.permits.map(({ host }) => ({
      ...{ host, sent: 1, lastSentAt: T0 + 0.5, finished: true, smallestGapMs: null, firstSentAt: T0 },
    })),
    robots: batch.robots.map(({ origin }) => ({
      kind: 'text',
      origin,
      text: 'User-agent: *\nAllow: /',
      trace: traceOf(),
    })),
    outcomes: batch.tasks.map((task, index) => outcomeOf(task.id, task.url, index)),
    found: batch.tasks.slice(0, 1).map(({ id, url }) => ({ taskId: id, links: [linkOf(url, '/early')] })),
    cookies: batch.tasks.slice(0, 1).map(({ url }) => ({
      origin: new URL(url).origin,
      identity: null,
      cookies: [
        {
          ...{ name: 'a', value: 'b', domain: 'a.example', path: '/', expiresAt: T0 },
          ...{ secure: false, hostOnly: true },
        },
      ],
    })),
    quality: [{ route: 'r', records: 1, invalid: 0, filled: { title: 1 } }],
    proxyFaults: (batch.proxies ?? []).map(({ id }) => ({ id, count: 1 })),
    archive,
    pack: { key: `${batch.packKey}-0a1b2c3d.tar`, bytes: 100 },
    trouble: null,
  };
}

export function linkOf(url: string, path: string): Discovered {
  const { origin, host } = new URL(url);
  return { url: `${origin}${path}`, host, priority: 0, route: null, meta: { a: [1] } };
}

/** Of each kind one, by turns. */
function outcomeOf(taskId: number, url: string, index: number): Outcome {
  const via = { rung: 0, fetcher: 'http', identity: null, proxy: null, cost: 1 } as const;
  const picture = `media/ab/${'ab'.repeat(32)}.png`;
  const shots = [{ kind: 'screenshot', key: picture, type: 'image/png', bytes: 9 } as const];
  const trace = traceOf({ via, shots });
  const page = pageOf({
    archive: { offset: 10, length: 100 },
    robotsTags: 'noindex',
    etag: '"x"',
    lastModified: 'Mon, 02 Jan 2006 15:04:05 GMT',
    media: { key: picture, md5: 'ab'.repeat(16), member: null },
  });
  const kinds: Outcome[] = [
    {
      ...{ kind: 'fetched', taskId, page, trace, note: 'all', shows: [`${new URL(url).origin}/x.png`] },
      links: [linkOf(url, `/found/${taskId}`)],
      records: [recordOf('k', { title: 'T' }, true), recordOf(`k${taskId}`, { title: 'T' })],
      rejected: { count: 1, first: [{ place: 'entry 1', reason: 'odd' }] },
    },
    { kind: 'unchanged', taskId, page: null, trace },
    { kind: 'redirected', taskId, to: `${new URL(url).origin}/to/${taskId}`, page, trace },
    { kind: 'skipped', taskId, code: 'scope', detail: 'why', trace: null },
    { kind: 'failed', taskId, code: 'timeout' as never, detail: 'why', page: null, retryAfterMs: 5, trace },
    { kind: 'failed', taskId, code: 'not-found', detail: 'why', page, retryAfterMs: null, trace },
    { kind: 'deferred', taskId },
  ];
  return kinds[index % kinds.length]!;
}
