import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import type { Batch, BatchTask, Report } from '../../../src/core/batch/batch.ts';
import { WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { openHttpFetcher } from '../../../src/fetch/http/http-fetcher.ts';
import { processBatch } from '../../../src/worker/batch/process-batch.ts';
import { JobCache } from '../../../src/worker/compile-job.ts';
import { specOf, temporaryFolder } from '../fixtures.ts';
import { realClock } from '../real-clock.ts';

/** The job that visits the hostile web: short times, and pages that must have come whole. */

const TASK_MS = 2_000;
export const BUDGET_MS = 3_000;

export const HOSTILE_JOB: Partial<JobInput> = {
  allowPrivate: true,
  follow: true,
  politeness: { rate: 'max', parallel: 32 },
  timeouts: { connectMs: 800, headersMs: 800, bodyMs: 800, taskMs: TASK_MS },
  routes: [
    { name: 'empty', match: ['**/34-*', '**/34-*/**'] },
    // The heading is at the beginning of each page, and this at its end.
    { name: 'page', select: { title: { css: 'h1', required: true }, end: { css: '#end', required: true } } },
  ],
};

/** The same as objects to be stored, which takes another way through the fetcher. */
const HOSTILE_MEDIA: Partial<JobInput> = {
  ...HOSTILE_JOB,
  routes: [{ name: 'media', kind: 'media' }],
  // HTML as well, which is no file unless the job says so.
  media: { bytes: 32 * 1024 * 1024, types: ['*/*', 'text/html'] },
};

/** For hosts that mean well: the times that jobs have by default. */
const GOOD_JOB: Partial<JobInput> = { ...HOSTILE_JOB, timeouts: {} };
/** For what ends by something else than its time: a busy machine takes ten seconds for a million links. */
const PATIENT_BUDGET_MS = 60_000;
export const PATIENT_TIMEOUTS = { connectMs: 30_000, headersMs: 30_000, bodyMs: 30_000, taskMs: 60_000 };
const PATIENT_JOB: Partial<JobInput> = { ...HOSTILE_JOB, timeouts: PATIENT_TIMEOUTS };
const PATIENT_MEDIA: Partial<JobInput> = { ...HOSTILE_MEDIA, timeouts: PATIENT_TIMEOUTS };

interface RunOptions {
  task?: Partial<BatchTask>;
  gapMs?: number;
  parallel?: number;
  budgetMs?: number;
  kind?: 'page' | 'media' | 'good';
  /** What ends by something else than a timeout does not get a short one: a busy machine may take seconds. */
  patient?: boolean;
}

export interface HostileSetup {
  /** One batch; every URL is of the same host. Outcomes come in the order of the URLs. */
  run(urls: string[], options?: RunOptions): Promise<Outcome[]>;
  close(): Promise<void>;
}

export async function openHostileSetup(): Promise<HostileSetup> {
  const folder = await temporaryFolder();
  const fetcher = openHttpFetcher({ clock: realClock, isPublicAddress: () => false });
  const blobs = await openFolderBlobs(folder.dir);
  const jobs = new JobCache(async () => new Map());
  const tools = { name: 'hostile', fetcher, blobs, clock: realClock, jobs };
  const good = specOf(GOOD_JOB);
  const hasty = { page: specOf(HOSTILE_JOB), media: specOf(HOSTILE_MEDIA), good };
  const patient = { page: specOf(PATIENT_JOB), media: specOf(PATIENT_MEDIA), good };
  let batches = 0;
  return {
    async run(urls, options = {}) {
      const { kind = 'page' } = options;
      const spec = (options.patient ? patient : hasty)[kind];
      const batch = batchOf(++batches, urls, options);
      const job = {
        id: 1,
        name: 'hostile',
        specHash: `${kind} ${options.patient === true}`,
        spec,
        bundle: null,
      };
      const parts: Report[] = [];
      const last = await processBatch({ ...batch, job: { ...job, epoch: `e${batch.id}` } }, tools, {
        onPart: (part) => parts.push(part),
      });
      const reports = [...parts, last];
      const outcomes = reports.flatMap((part) => part.outcomes).map((outcome) => withFound(outcome, reports));
      return outcomes.sort((a, b) => a.taskId - b.taskId);
    },
    async close() {
      await fetcher.close();
      await blobs.close();
      await folder.remove();
    },
  };
}

/** Links that were sent ahead belong to the outcome, too. */
function withFound(outcome: Outcome, reports: readonly Report[]): Outcome {
  if (outcome.kind !== 'fetched') return outcome;
  const ahead = reports.flatMap(({ found = [] }) => found.filter(({ taskId }) => taskId === outcome.taskId));
  return { ...outcome, links: [...ahead.flatMap(({ links }) => links), ...outcome.links] };
}

function batchOf(id: number, urls: string[], options: RunOptions): Omit<Batch, 'job'> {
  const { gapMs = 0, parallel = 32, budgetMs = options.patient ? PATIENT_BUDGET_MS : BUDGET_MS } = options;
  const startAt = realClock.now();
  return {
    version: WIRE_VERSION,
    id,
    needs: 'http',
    budgetMs,
    permits: [{ host: new URL(urls[0]!).host, startAt, endAt: startAt + 3_600_000, gapMs, parallel }],
    robots: [],
    tasks: urls.map((url, index) => ({
      id: index + 1,
      url,
      permit: 0,
      depth: 0,
      route: null,
      attempt: 1,
      hops: 0,
      meta: null,
      lastVisit: null,
      ...options.task,
    })),
    archiveKey: `warc/test-1/${id}`,
    packKey: `shards/test-1/${id}`,
  };
}
