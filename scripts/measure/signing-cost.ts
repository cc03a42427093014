import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type Batch, type Report, WIRE_VERSION } from '../../src/core/batch/batch.ts';
import { openHttpFetcher } from '../../src/fetch/http/http-fetcher.ts';
import { fleetKeys, openBatch, openReply, sealBatch, sealPiece } from '../../src/transport/bullmq/wire.ts';
import { type MessageSeal, openMessageSeal } from '../../src/transport/message-seal.ts';
import { packPiece } from '../../src/transport/packed-report.ts';
import { Lateness } from '../../src/worker/batch/pace.ts';
import { processBatch } from '../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../src/worker/compile-job.ts';
import { MemoryBlobs } from '../../test/sim/memory-blobs.ts';
import { specOf } from '../../test/support/fixtures.ts';
import { realClock } from '../../test/support/real-clock.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values: options } = readOptions({
  start: 'npm run signing-cost --',
  about: `What it costs to sign and encrypt the messages of a fleet. The same batch goes to a worker and its report back, with a
fleet key and without, in alternating pairs; measured is the CPU of this thread. Nothing is settled here, and Redis is
left out, so that the share is larger than in a real fleet.`,
  options: {
    write: { flag: true, does: 'put the result into docs/security.md' },
  },
});

const PAIRS = 100;
const WARM_UP = 20;
const PAGES = 60;
/** Of the CPU of a page. */
const SHARE_MAX = 0.03;

/** Pages of 24 KB with 33 links, all of them different, in a thread of their own. */
const SITE = `
  const { createServer } = require('node:http');
  const { parentPort } = require('node:worker_threads');
  const words = 'sofa chair table lamp made last price wood oak soft blue green with each home order new old fine small'.split(' ');
  const page = (n) => {
    const links = Array.from({ length: 33 }, (_, i) => '<li><a href="/page/' + (n * 33 + i) + '">page ' + i + '</a></li>');
    const text = Array.from({ length: 4000 }, (_, i) => words[(n * 7919 + i * i * 31 + (i >> 3)) % words.length]);
    return '<html><body><h1>' + n + '</h1><ul>' + links.join('') + '</ul><p>' + text.join(' ') + '</p></body></html>';
  };
  const pages = Array.from({ length: ${PAGES} }, (_, n) => Buffer.from(page(n)));
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(pages[Number(request.url.split('/').at(-1)) % pages.length]);
  });
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;

const site = new Worker(SITE, { eval: true });
const [port] = (await once(site, 'message')) as [number];
const HOST = `127.0.0.1:${port}`;
const spec = specOf({ follow: 'host', limits: { perTemplate: null }, allowPrivate: true });
const blobs = new MemoryBlobs();
const fetcher = openHttpFetcher({ clock: realClock, isPublicAddress: () => false });
const tools = {
  ...{ name: 'worker', clock: realClock, lateness: new Lateness(), blobs, fetcher },
  jobs: new JobCache(async () => new Map()),
};

function batchOf(id: number): Batch {
  const startAt = realClock.now();
  return {
    ...{ version: WIRE_VERSION, id, needs: 'http', budgetMs: 30_000, robots: [] },
    job: { id: 1, name: 'cost', specHash: 'one', spec, bundle: null, epoch: `e${id}` },
    permits: [{ host: HOST, startAt, endAt: startAt + 60_000, gapMs: 0, parallel: 4 }],
    tasks: Array.from({ length: PAGES }, (_, index) => ({
      ...{ id: index + 1, url: `http://${HOST}/page/${index}`, permit: 0, depth: 0, route: null },
      ...{ attempt: 1, hops: 0, meta: null, lastVisit: null },
    })),
    ...{ archiveKey: `warc/cost/${id}`, packKey: `shards/cost/${id}` },
  };
}

interface Cost {
  all: number;
  seal: number;
}

/**
 * Measures itself: the difference of two whole batches says little on a machine that has other work. By the clock, since CPU
 * is counted in steps of milliseconds; nothing waits here, and the median leaves out what was interrupted.
 */
function metered(seal: MessageSeal): MessageSeal & { us: number } {
  const meter = {
    ...seal,
    us: 0,
    seal: (...args: Parameters<MessageSeal['seal']>) => timed(() => seal.seal(...args)),
    open: (...args: Parameters<MessageSeal['open']>) => timed(() => seal.open(...args)),
  };
  const timed = <T>(work: () => T): T => {
    const before = performance.now();
    const result = work();
    meter.us += (performance.now() - before) * 1_000;
    return result;
  };
  return meter;
}

/** There and back, in microseconds of CPU for a page: all of it, and what the seal took. */
async function carry(id: number, seal: MessageSeal & { us: number }): Promise<Cost> {
  seal.us = 0;
  const sentId = String(id);
  const before = process.threadCpuUsage();
  const sent = batchOf(id);
  const message = sealBatch(sent, { seal, keys: KEYS, sentId, now: Date.now() });
  const batch = openBatch(message, { seal, keys: KEYS, sentId, queue: 'http', now: Date.now() }) as Batch;
  const reports: Report[] = [];
  reports.push(await processBatch(batch, tools, { onPart: (part) => reports.push(part) }));
  for (const report of reports) {
    const body = sealPiece(packPiece(report), { part: report.part, sentId }, { seal, keys: KEYS, batch });
    openReply({ kind: 'report', sentId, body }, { seal, keys: KEYS, batch: sent });
  }
  const { user, system } = process.threadCpuUsage(before);
  const cost = { all: (user + system) / PAGES, seal: seal.us / PAGES };
  blobs.blobs.clear();
  return cost;
}

const KEYS = fleetKeys('seine');
const seals = {
  signed: metered(openMessageSeal([randomBytes(33).toString('base64')])),
  plain: metered(openMessageSeal([])),
};
const costs = { signed: [] as Cost[], plain: [] as Cost[] };
for (let id = 1; id <= PAIRS + WARM_UP; id++)
  for (const which of id % 2 === 0 ? (['plain', 'signed'] as const) : (['signed', 'plain'] as const)) {
    const cost = await carry(id, seals[which]);
    if (id > WARM_UP) costs[which].push(cost);
  }
const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const without = median(costs.plain.map(({ all }) => all));
const added = median(costs.signed.map(({ seal }, index) => seal - costs.plain[index]!.seal));
const share = added / without;
const table = [
  '| CPU of a page without a key | signing and encryption, median of pairs | share | bar |',
  '|--:|--:|--:|--:|',
  `| ${without.toFixed(0)} µs | ${added.toFixed(1)} µs | ${(share * 100).toFixed(1)} % | ${SHARE_MAX * 100} % |`,
].join('\n');
process.stdout.write(`${table}\n`);
if (options.write) replaceBetween('docs/security.md', 'signing-cost', table);
await fetcher.close();
await site.terminate();
process.exitCode = share <= SHARE_MAX ? 0 : 1;
