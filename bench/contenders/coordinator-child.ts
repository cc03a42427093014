/**
 * The coordinator alone, against workers that answer at once: a list of pictures over many hosts goes through
 * planning, leasing and settling, and nothing is fetched. Prints `{"pages":…,"seconds":…}`.
 */

import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';
import { Coordinator } from '../../src/coordinator/coordinator.ts';
import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../src/coordinator/sources/source-feeder.ts';
import { type Batch, type Report, WIRE_VERSION } from '../../src/core/batch/batch.ts';
import type { Outcome } from '../../src/core/batch/outcome.ts';
import { isPublicAddress } from '../../src/core/url/address.ts';
import { makeAddressGuard } from '../../src/core/url/address-guard.ts';
import type { Dispatcher } from '../../src/ports/dispatcher.ts';
import type { Store } from '../../src/ports/store.ts';
import { openFilesByScheme } from '../../src/sources/files/files-by-scheme.ts';
import { openSource } from '../../src/sources/open-source.ts';
import { systemClock } from '../../src/worker/batch/system-clock.ts';
import { codeOf } from '../../test/support/fixtures.ts';

const [folder, tasksText, storeUrl] = process.argv.slice(2) as [string, string, string | undefined];
const TASKS = Number(tasksText);
const HOSTS = 400;
/** As many batches under way as 400 workers would have. */
const WORKERS = 400;
/** A picture took so long, as far as the hosts' statistics are concerned. */
const VISIT_MS = 300;
const QUIET = { info() {}, warn: (text: string) => void process.stderr.write(`${text}\n`), error() {} };

async function openStore(): Promise<Store> {
  if (storeUrl) {
    const { openPostgresStore } = await import('../../src/store/postgres/postgres-store.ts');
    return openPostgresStore(storeUrl);
  }
  const { openSqliteStore } = await import('../../src/store/sqlite/sqlite-store.ts');
  return openSqliteStore(join(folder, 'seine.db'), { checkpointThread: true });
}

function outcomeOf({ id, url }: Batch['tasks'][number], startedAt: number): Outcome {
  const sha256 = hash('sha256', url, 'hex');
  return {
    kind: 'fetched',
    taskId: id,
    page: {
      route: null,
      httpStatus: 200,
      contentType: 'image/jpeg',
      bytes: 80_000,
      sha256,
      archive: null,
      media: { key: `media/${sha256.slice(0, 2)}/${sha256}.jpg`, md5: sha256.slice(0, 32), member: null },
      robotsTags: null,
      etag: '"abc"',
      lastModified: null,
    },
    links: [],
    records: [],
    shows: [],
    trace: { startedAt, durationMs: VISIT_MS, httpStatus: 200, bytes: 80_000 },
  };
}

function answer(batch: Batch): Report {
  const now = systemClock.now();
  return {
    version: WIRE_VERSION,
    batchId: batch.id,
    part: 0,
    final: true,
    worker: 'instant',
    startedAt: now,
    durationMs: VISIT_MS,
    permits: batch.permits.map(({ host }, index) => {
      const sent = batch.tasks.filter(({ permit }) => permit === index).length;
      return { host, sent, lastSentAt: now, finished: true };
    }),
    robots: [],
    outcomes: batch.tasks.map((task) => outcomeOf(task, now)),
    quality: [],
    archive: null,
  };
}

const dispatcher: Dispatcher = {
  workers: WORKERS,
  slots: WORKERS,
  dispatch: async (batch) => ({ kind: 'report', report: answer(batch) }),
  async drain() {},
  async close() {},
};

const list = join(folder, 'urls.txt');
writeFileSync(
  list,
  Array.from({ length: TASKS }, (_, index) => `https://host-${index % HOSTS}.example/p/${index}.jpg`).join(
    '\n',
  ),
);
const store = await openStore();
const blobs = await openFolderBlobs(folder);
const files = openFilesByScheme(() => Promise.reject(new Error('no S3 here')), {
  guard: makeAddressGuard(isPublicAddress, false),
  jobAllowsPrivate: false,
});
const code = codeOf('instant', {
  sources: [list],
  politeness: { rate: 'max', robots: false },
  batchSize: 60,
});
const job = await store.jobs.create({ ...code, name: 'instant', now: Date.now() });
const sources = job.spec.sources.map((spec, source) =>
  openSource(spec, {
    files: files.of,
    query: (sql) => store.views.query(sql),
    spool: { dir: folder, jobId: job.id, pass: job.pass, source },
  }),
);
const shared = { store, job, clock: systemClock, logger: QUIET };
const coordinator = new Coordinator({
  ...shared,
  blobs,
  dispatcher,
  feeder: new SourceFeeder({ ...shared, sources }),
  progress: createProgress({ startedAt: systemClock.now() }),
  random: { next: Math.random },
  diskFree: async () => null,
});
const startedAt = performance.now();
const cpuBefore = process.cpuUsage();
const { counters } = await coordinator.run();
const seconds = (performance.now() - startedAt) / 1_000;
const cpu = process.cpuUsage(cpuBefore);
await blobs.close();
await store.close();
process.stdout.write(
  `${JSON.stringify({ pages: counters.done, seconds, cpuSeconds: (cpu.user + cpu.system) / 1e6 })}\n`,
);
