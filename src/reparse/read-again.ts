import type { Discovered, QualityDelta, RecordDraft } from '../core/batch/outcome.ts';
import { detectBlock } from '../core/blocking/block-detection.ts';
import { messageOf } from '../core/errors.ts';
import { isJudgedByContent } from '../core/failures.ts';
import { isHtml, sniffMediaType } from '../core/media/media-type.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { ArchivedPage } from '../ports/store.ts';
import {
  type CompiledJob,
  type CompiledRoute,
  type ReadResult,
  routeOf,
  ValidationError,
} from '../worker/job/compiled-job.ts';
import { discoverFollowed, discoverLinks } from '../worker/links/discover-links.ts';
import { headerOf, Page } from '../worker/page/page.ts';
import { permissionsOf, robotsTagsOf } from '../worker/page/robots-tags.ts';
import { readPage, type StoredResponse } from '../worker/storage/read-page.ts';

/** What today's code makes of an archived page. */
export type ReparsedPage = {
  page: ArchivedPage;
} /** Links only of a page that was refused before: those of the others are known. */ & (
  | {
      kind: 'read';
      drafts: RecordDraft[];
      links: Discovered[];
      /** Null where the route looks for no media. */
      shows: Discovered[] | null;
      quality: QualityDelta | null;
    }
  | { kind: 'failed'; code: 'parse-error' | 'validation'; detail: string; quality: QualityDelta | null }
  /** The archive does not have it any more, or not whole. */
  | { kind: 'unreadable'; detail: string }
  /** Redirects, and what is no page: nothing was ever read from them. */
  | { kind: 'other' }
);

/** Never rejects: whatever is wrong with a page or a handler is part of the answer. */
export async function readAgain(page: ArchivedPage, job: CompiledJob, blobs: Blobs): Promise<ReparsedPage> {
  let stored: StoredResponse;
  try {
    stored = await readPage(blobs, page.archive, { sha256: page.sha256 });
  } catch (error) {
    return { page, kind: 'unreadable', detail: messageOf(error) };
  }
  // A route that is gone may have been renamed: the URL tells.
  const route = routeOf(job, stored.url, page.route) ?? routeOf(job, stored.url, null);
  // A page that is still blocked by today's rules stays what it is.
  if (wasBlocked(page) && !route?.proves && isBlocked(stored, job)) return { page, kind: 'other' };
  if (stored.status >= 300 || (route && route.kind !== 'page')) return { page, kind: 'other' };
  // What scripts loaded is not in the archive: the record would lose it.
  if (route?.render && route.render.capture.length > 0) return { page, kind: 'other' };
  const name = route?.name ?? '';
  try {
    const { drafts, links, shows, quality } = await readStored(page, stored, job, route);
    return { page, kind: 'read', drafts, links, shows, quality: quality && { route: name, ...quality } };
  } catch (error) {
    if (wasBlocked(page)) return { page, kind: 'other' };
    const invalid = error instanceof ValidationError;
    return {
      page,
      kind: 'failed',
      code: invalid ? 'validation' : 'parse-error',
      detail: messageOf(error),
      quality: invalid ? { route: name, records: 0, invalid: 1, filled: {} } : null,
    };
  }
}

/** Whether it is a dead letter only because of what the code, or the rules of blocking, said of it. */
export function wasRefused({ state, failureCode }: ArchivedPage): boolean {
  return state === 'dead' && isJudgedByContent(failureCode);
}

function wasBlocked({ failureCode }: Pick<ArchivedPage, 'failureCode'>): boolean {
  return failureCode === 'blocked' || failureCode === 'captcha' || failureCode === 'soft-block';
}

function isBlocked({ url, status, headers, body }: StoredResponse, job: CompiledJob): boolean {
  const contentType = sniffMediaType(body, headerOf(headers, 'content-type'));
  const answer = { url, status, rawHeaders: headers, body, isHtml: isHtml(contentType) };
  return detectBlock(answer, job.spec.blocking) !== null;
}

const NOTHING: ReadResult = { drafts: [], values: [], quality: null };

async function readStored(
  archived: ArchivedPage,
  { url, status, headers, body }: StoredResponse,
  job: CompiledJob,
  route: CompiledRoute | null,
): Promise<ReadResult & { links: Discovered[]; shows: Discovered[] | null }> {
  const contentTypeHeader = headerOf(headers, 'content-type');
  const contentType = sniffMediaType(body, contentTypeHeader);
  const about = { url, status, headers, body, meta: archived.meta, contentType, contentTypeHeader };
  const page = new Page({ ...about, route: route?.name ?? null });
  const { spec } = job;
  const policy = spec.politeness.robotsTags;
  const tags = policy === 'obey' ? robotsTagsOf(page, job.headers['user-agent']!) : null;
  const may = permissionsOf(tags, policy);
  const result = route?.read ? await within(spec.timeouts.taskMs, route.read(page)) : NOTHING;
  const wantsLinks = may.links && wasRefused(archived);
  const kept = may.records ? result : NOTHING;
  const shows = route?.findMedia ? (may.media ? route.findMedia(page, kept.values) : []) : null;
  return {
    ...kept,
    shows,
    links: wantsLinks ? linksOf(page, archived.depth, job, route) : [],
  };
}

function linksOf(page: Page, depth: number, job: CompiledJob, route: CompiledRoute | null): Discovered[] {
  const follows = isHtml(page.contentType) && route?.follow !== false;
  return [
    ...(follows ? discoverLinks(page, job, depth) : []),
    ...discoverFollowed(page, job, depth),
    ...(route?.paginate?.(page, job.spec) ?? []),
  ];
}

/** A handler that waits gets as long as a task. */
async function within(ms: number, result: ReadResult | Promise<ReadResult>): Promise<ReadResult> {
  if (!(result instanceof Promise)) return result;
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`the handler did not finish within ${ms} ms`)), ms);
  try {
    return await Promise.race([result, over]);
  } finally {
    clearTimeout(timer);
  }
}
