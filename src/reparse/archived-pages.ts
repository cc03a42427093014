import { isHtml, sniffMediaType } from '../core/media/media-type.ts';
import { templateOf } from '../core/url/url-shape.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { ArchivedPage, Job, Store, VisitedPage } from '../ports/store.ts';
import { type CompiledJob, routeOf } from '../worker/job/compiled-job.ts';
import { headerOf, Page } from '../worker/page/page.ts';
import { readPage } from '../worker/storage/read-page.ts';

/** HTML pages of an archive, as code of a job gets them. */

type Stored = Pick<VisitedPage, 'archive' | 'sha256'>;

/** Null for what is no HTML or an error. Throws `SeineError` when the archive does not have it. */
export async function openPage(blobs: Blobs, { archive, sha256 }: Stored): Promise<Page | null> {
  const { url, status, headers, body } = await readPage(blobs, archive, { sha256 });
  const contentTypeHeader = headerOf(headers, 'content-type');
  const contentType = sniffMediaType(body, contentTypeHeader);
  if (status >= 300 || !isHtml(contentType)) return null;
  const about = { url, status, headers, body, contentType, contentTypeHeader };
  return new Page({ ...about, route: null, meta: null });
}

export interface SampledPage {
  taskId: number;
  fetchedAt: number;
  page: Page;
}

/** A kind of pages: those of a route, or those that stand beside each other where no route takes them. */
export function kindOf(code: CompiledJob, url: string, named: string | null = null): string {
  const route = routeOf(code, url, named);
  if (route) return `route ${route.name}`;
  // The last part is often a name made of a title, which no other page has.
  const [path = ''] = templateOf(url).split('?', 1);
  return `beside ${path.slice(0, path.lastIndexOf('/') + 1)}`;
}

/** Pages of a kind, as they were last fetched. What the archive has lost is left out. */
export async function samplePages(
  { store, blobs, job, code }: { store: Pick<Store, 'views'>; blobs: Blobs; job: Job; code: CompiledJob },
  kind: string,
  limit: number,
): Promise<SampledPage[]> {
  const found: SampledPage[] = [];
  for await (const { url, route, taskId, fetchedAt, ...stored } of store.views.pages(job.id)) {
    if (found.length >= limit) break;
    if (kindOf(code, url, route) !== kind) continue;
    const page = await openPage(blobs, stored).catch(() => null);
    if (page) found.push({ taskId, fetchedAt, page });
  }
  return found;
}

/** Earlier visits of a page that are known of, the newest of them and the first. */
const VISITS_MAX = 1_000;

/**
 * Of the earlier visits of a page, newest first, those that are looked at: the 1st, 2nd, 4th, 8th and so on, and the very first.
 * What a page lost long ago, the newest of them do not have either.
 */
function spread<T>(visits: readonly T[]): T[] {
  const last = visits.length - 1;
  return visits.filter((_, index) => Number.isInteger(Math.log2(index + 1)) || index === last);
}

/** What the same URLs had before: earlier visits of this run, or else the run before. The newest come first. */
export async function formerPages(
  { store, blobs, job, before }: { store: Pick<Store, 'views'>; blobs: Blobs; job: Job; before: Job | null },
  sample: readonly SampledPage[],
): Promise<Map<SampledPage, Page[]>> {
  const byTask = new Map(sample.map((one) => [one.taskId, one]));
  const stored = new Map<SampledPage, Stored[]>();
  const add = (one: SampledPage | undefined, visit: Stored) => {
    if (!one) return;
    const list = stored.get(one) ?? [];
    list.push(visit);
    if (list.length > VISITS_MAX) list.splice(1, 1);
    stored.set(one, list);
  };
  for await (const visit of store.views.visitedPages(job.id)) {
    const one = byTask.get(visit.taskId);
    if (one && visit.fetchedAt < one.fetchedAt) add(one, visit);
  }
  if (before && stored.size < sample.length) {
    const byUrl = new Map(sample.filter((one) => !stored.has(one)).map((one) => [one.page.url, one]));
    for await (const page of store.views.pages(before.id) as AsyncIterable<ArchivedPage>)
      add(byUrl.get(page.url), page);
  }
  const found = new Map<SampledPage, Page[]>();
  for (const [one, visits] of stored) {
    const pages = await Promise.all(
      spread(visits.toReversed()).map((visit) => openPage(blobs, visit).catch(() => null)),
    );
    found.set(
      one,
      pages.filter((page) => page !== null),
    );
  }
  return found;
}
