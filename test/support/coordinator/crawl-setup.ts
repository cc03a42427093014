import { join } from 'node:path';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import type { CostRules } from '../../../src/coordinator/budget/budget-watch.ts';
import { Coordinator } from '../../../src/coordinator/coordinator.ts';
import type { OpenPermits } from '../../../src/coordinator/hosts/open-permits.ts';
import { createProgress } from '../../../src/coordinator/reports/progress.ts';
import { SourceFeeder } from '../../../src/coordinator/sources/source-feeder.ts';
import { StoreRoom, waitForRoom } from '../../../src/coordinator/storage/store-room.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { Counters, JobState, TaskRow } from '../../../src/core/model.ts';
import { type HttpFetcherOptions, openHttpFetcher } from '../../../src/fetch/http/http-fetcher.ts';
import type { Clock, Logger } from '../../../src/ports/ambient.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import type { Job, Store } from '../../../src/ports/store.ts';
import { openSource } from '../../../src/sources/open-source.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { openInlineDispatcher } from '../../../src/transport/inline-dispatcher.ts';
import { processBatch, type WorkerTools } from '../../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../../src/worker/compile-job.ts';
import type { JobHandlers } from '../../../src/worker/job/route-code.ts';
import { codeOf, collect, temporaryFolder } from '../fixtures.ts';
import { realClock } from '../real-clock.ts';

export interface Crawled {
  state: JobState;
  counters: Counters;
  tasks: TaskRow[];
}

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

/** A whole crawl within this process, with a fetcher whose names and addresses are the test's. */
export async function crawl(
  input: Partial<JobInput>,
  options: Partial<HttpFetcherOptions> & {
    forbidsPrivate?: boolean;
    fetcherOf?: WorkerTools['fetcherOf'];
    /** Of coordinator and worker. */
    clock?: Clock;
    handlers?: JobHandlers;
    /** Puts something before the store, or the blobs, of this crawl. */
    storeIn?: (path: string) => Store;
    blobsOver?: (blobs: Blobs) => Blobs;
    onWarning?: (message: string) => void;
    diskFree?: () => Promise<number | null>;
    /** Puts another dispatcher before the one of this process. */
    through?: (inline: Dispatcher) => Dispatcher;
    costs?: CostRules;
    /** Those of all jobs of a server. */
    permits?: OpenPermits;
    /** Id of the API key that the job belongs to. */
    owner?: string;
    /** Before the job is made. */
    prepare?: (store: Store) => Promise<unknown>;
    /** Once it has ended: whether it is to go on, with what is stored of it now. */
    again?: (place: { store: Store; job: Job }) => Promise<boolean>;
    logger?: Logger;
    /** Once the job is there, before it runs. */
    begun?: (place: { store: Store; job: Job }) => void;
    /** Each time before it runs. */
    onCoordinator?: (coordinator: Coordinator) => void;
    /** Right before the coordinator ends the job. */
    beforeFinish?: () => Promise<void>;
    /** Before everything is gone. */
    inspect?: (place: { store: Store; blobs: Blobs; job: Job }) => Promise<void>;
  } = {},
): Promise<Crawled> {
  const {
    forbidsPrivate = false,
    fetcherOf,
    clock = realClock,
    handlers = new Map(),
    through = (inline) => inline,
    logger: ownLogger,
    inspect,
    begun,
    beforeFinish,
    storeIn = (path) => openSqliteStore(path, { sync: 'normal', checkpointThread: false }),
    blobsOver = (blobs) => blobs,
    onWarning: warn = () => {},
    diskFree = async () => null,
    costs,
    permits,
    owner = null,
    prepare,
    again,
    onCoordinator = () => {},
    ...fetcherOptions
  } = options;
  const folder = await temporaryFolder();
  const logger = ownLogger ?? { ...SILENT, warn };
  const room = new StoreRoom({ clock, logger });
  const store = waitForRoom(storeIn(join(folder.dir, 'seine.db')), room);
  const blobs = blobsOver(await openFolderBlobs(folder.dir));
  const fetcher = openHttpFetcher({ clock, isPublicAddress: () => false, ...fetcherOptions });
  const tools = {
    name: 'inline',
    fetcher,
    ...(fetcherOf ? { fetcherOf } : {}),
    blobs,
    clock,
    jobs: new JobCache(async () => handlers, { forbidsPrivate }),
  };
  try {
    const code = codeOf('crawl', {
      retry: { attempts: 2, baseMs: 10, maxMs: 50 },
      politeness: { rate: 'max' },
      ...input,
    });
    await prepare?.(store);
    let job = await store.jobs.create({ ...code, name: 'crawl', now: Math.floor(clock.now()), owner });
    begun?.({ store, job });
    const finish = store.jobs.finish.bind(store.jobs);
    if (beforeFinish)
      store.jobs.finish = async (...args) => {
        await beforeFinish();
        return finish(...args);
      };
    const run = () => {
      const spool = { dir: folder.dir, jobId: job.id, pass: job.pass, source: 0 };
      const sources = job.spec.sources.map((spec) =>
        openSource(spec, {
          files: async () => Promise.reject(new Error('no files here')),
          query: (sql) => store.views.query(sql),
          spool,
        }),
      );
      const shared = { store, job, clock, logger, room };
      const coordinator = new Coordinator({
        ...shared,
        blobs,
        dispatcher: through(
          openInlineDispatcher(
            (batch, more) => processBatch(batch, tools, more),
            async () => {},
          ),
        ),
        feeder: new SourceFeeder({ ...shared, sources }),
        progress: createProgress({ startedAt: clock.now() }),
        random: { next: Math.random },
        diskFree,
        ...(costs ? { costs } : {}),
        ...(permits ? { permits } : {}),
      });
      onCoordinator(coordinator);
      return coordinator.run();
    };
    let { state, counters } = await run();
    while (await again?.({ store, job })) {
      job = await store.jobs.get(job.id);
      ({ state, counters } = await run());
    }
    await inspect?.({ store, blobs, job });
    return { state, counters, tasks: await collect(store.views.tasks(job.id)) };
  } finally {
    await fetcher.close();
    await blobs.close();
    await store.close();
    await folder.remove();
  }
}
