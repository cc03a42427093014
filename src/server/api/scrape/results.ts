import type { Counters, JobState, TaskState } from '../../../core/model.ts';
import type { Blobs } from '../../../ports/blobs.ts';
import type { ReadStore } from '../../../ports/store/read-store.ts';
import type { Job, NumberedTask } from '../../../ports/store.ts';
import { mainContent } from '../../../worker/markdown/markdown.ts';
import { plainText } from '../../../worker/markdown/plain-text.ts';
import { Page } from '../../../worker/page/page.ts';
import { readPage } from '../../../worker/storage/read-page.ts';
import { FORMATS, type Format } from '../requests/options.ts';
import { type UrlError, urlError } from '../requests/problems.ts';
import { isBeingRead } from './open-batches.ts';

/** How tasks and jobs look in answers. */

type ResultStatus = 'succeeded' | 'failed' | 'skipped' | 'pending';

const STATUS_OF: Record<TaskState, ResultStatus> = {
  pending: 'pending',
  leased: 'pending',
  done: 'succeeded',
  unchanged: 'succeeded',
  skipped: 'skipped',
  dead: 'failed',
};

export const STATES_OF: Record<ResultStatus, TaskState[]> = {
  succeeded: ['done', 'unchanged'],
  failed: ['dead'],
  skipped: ['skipped'],
  pending: ['pending', 'leased'],
};

export const isFinished = ({ state }: { state: TaskState }) => STATUS_OF[state] !== 'pending';

/** One row for each URL of a request, whatever became of it. */
export function resultOf(task: NumberedTask): Record<string, unknown> {
  const status = STATUS_OF[task.state];
  const code = status === 'failed' || status === 'skipped' ? task.failureCode : null;
  return {
    url: task.url,
    status,
    http_status: task.httpStatus,
    code,
    retryable: code === null ? null : urlError(code, null, null).retryable,
    detail: code === null ? null : task.failureDetail,
    content_type: task.contentType,
    bytes: task.bytes,
    fetched_at: task.fetchedAt,
    final_url: task.redirectTo ?? task.url,
    attempts: task.attempts,
    sha256: task.sha256,
    shots: task.shots.map(({ kind, key, type, bytes }) => ({ kind, key, type, bytes })),
    meta: task.meta,
  };
}

const LINKS_MAX = 10_000;

/** The result with what was asked for of the page itself, from the archive. */
export async function wholeResult(
  { reads, blobs }: { reads: Pick<ReadStore, 'views'>; blobs: Blobs },
  task: NumberedTask,
  formats: readonly Format[],
): Promise<Record<string, unknown>> {
  const result = resultOf(task);
  if (formats.includes('records'))
    result.records = (await reads.views.recordsOf(task.id)).map(({ data }) => data);
  const fromPage = formats.filter((format) => ['html', 'text', 'markdown', 'links'].includes(format));
  const page = fromPage.length === 0 ? null : await storedPage(blobs, task);
  if (page) for (const format of fromPage) result[format] = formatOf(page, format);
  return result;
}

/** Null when there is no copy of the page, or none that can be read: the rest of the answer is no less true. */
export async function storedPage(blobs: Blobs, task: NumberedTask): Promise<Page | null> {
  const { archive, sha256 } = task;
  const stored = archive && (await readPage(blobs, archive, { sha256 }).catch(() => null));
  if (!stored) return null;
  const { url, status, headers, body } = stored;
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-type');
  const contentTypeHeader = at === -1 ? null : headers[at + 1]!;
  const { contentType, meta, route } = task;
  return new Page({ url, status, headers, body, contentType, contentTypeHeader, route, meta });
}

export function formatOf(page: Page, format: Format): unknown {
  if (format === 'html') return page.text;
  if (format === 'markdown') return mainContent(page).markdown;
  if (format === 'text') {
    const body = page.one('body');
    return body ? plainText(body) : page.text;
  }
  const links = page.all('a[href]').flatMap((link) => URL.parse(link.attribs.href!, page.url)?.href ?? []);
  return [...new Set(links)].slice(0, LINKS_MAX);
}

type JobStatus = 'queued' | 'running' | 'completed' | 'failed' | 'stopped' | 'cancelled';

export function statusOf(job: Job, counters: Counters): JobStatus {
  const byState: Record<JobState, JobStatus> = {
    running: counters.attempted + counters.leased === 0 ? 'queued' : 'running',
    waiting: isBeingRead(job) ? 'running' : 'completed',
    done: 'completed',
    stopped: 'stopped',
    tripped: 'failed',
    cancelled: 'cancelled',
  };
  const status = byState[job.state];
  const isAllDead = counters.accepted > 0 && counters.dead === counters.accepted;
  return status === 'completed' && isAllDead ? 'failed' : status;
}

export const hasEnded = (status: JobStatus) => status !== 'queued' && status !== 'running';

/** For good: also one whose run has not noticed it yet. */
export function isCancelled({ state, requestedState }: Pick<Job, 'state' | 'requestedState'>): boolean {
  return state === 'cancelled' || (state === 'running' && requestedState === 'cancel');
}

export const jobIdOf = (job: Pick<Job, 'id'>) => `job_${job.id}`;

/** Names the task, and what was asked for of its page. */
export function scrapeIdOf(jobId: number, taskId: number, formats: readonly Format[]): string {
  const asked = FORMATS.reduce((sum, format, at) => sum + (formats.includes(format) ? 2 ** at : 0), 0);
  return `scrape_${jobId}_${taskId}_${asked}`;
}

/** Counts that add up at every instant: total = succeeded + failed + skipped + pending. */
function countsOf(counters: Counters): Record<string, number> {
  const { accepted, done, unchanged, dead, skipped, pending, leased, records, bytes, requests } = counters;
  return {
    total: accepted,
    succeeded: done + unchanged,
    failed: dead,
    skipped,
    pending: pending + leased,
    running: leased,
    rejected: counters.rejected,
    duplicates: counters.duplicates,
    records,
    bytes,
    requests,
    retries: counters.retries,
  };
}

/** `{status: completed, result}` or `{status: failed, error}`; while it runs, only how far it is. */
export function jobView(job: Job, counters: Counters, tallies: readonly { state: string; code: string }[]) {
  const status = statusOf(job, counters);
  const counts = countsOf(counters);
  const id = jobIdOf(job);
  const worst = tallies.find(({ state }) => state === 'dead')?.code ?? 'internal';
  const error: UrlError | { code: string; detail: string | null } =
    job.state === 'tripped' ? { code: 'stopped', detail: job.reason } : urlError(worst, job.reason, null);
  return {
    job_id: id,
    name: job.name,
    run: job.run,
    status,
    ...(status === 'completed' ? { result: { ...counts, results_url: `/api/v1/jobs/${id}/results` } } : {}),
    ...(status === 'failed' ? { error } : {}),
    counts,
    reason: job.reason,
    created_at: new Date(job.createdAt).toISOString(),
    ended_at: job.endedAt === null ? null : new Date(job.endedAt).toISOString(),
    priority: job.spec.priority ?? 0,
  };
}
