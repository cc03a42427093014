import { hash } from 'node:crypto';
import type { BatchTask } from '../../core/batch/batch.ts';
import type { Discovered, Outcome, QualityDelta, StoredPage, Trace } from '../../core/batch/outcome.ts';
import { type Block, detectBlock, detectBlockOfLacking } from '../../core/blocking/block-detection.ts';
import { needsScript } from '../../core/blocking/needs-script.ts';
import { messageOf } from '../../core/errors.ts';
import { FAILURES } from '../../core/failures.ts';
import { archivePartsOf } from '../../core/job-schema/job.ts';
import { isHtml, sniffMediaType } from '../../core/media/media-type.ts';
import { mayBeSitemap } from '../../core/sitemap/bytes.ts';
import type { FetchResponse } from '../../ports/fetcher.ts';
import { type CompiledRoute, type ReadResult, routeOf, ValidationError } from '../job/compiled-job.ts';
import { describeCodeError } from '../job/error-place.ts';
import { discoverFollowed, discoverLinks } from '../links/discover-links.ts';
import { type SitemapLinks, sitemapLinks, sitemapVisit } from '../links/sitemap-links.ts';
import { type MediaContext, processMedia } from '../media/store-media.ts';
import { headerOf, Page } from '../page/page.ts';
import { type Permissions, permissionsOf, robotsTagsOf } from '../page/robots-tags.ts';
import { isBlankRecord } from '../records/read-records.ts';
import { failed, snapshotOf, visit } from '../request/visit.ts';
import { keepNothing, type PageArchiver } from '../storage/archive.ts';
import {
  type NamedShot,
  nameShots,
  type Snapshot,
  storeShots,
  withSnapshot,
} from '../storage/screenshots.ts';
import { OVER, withinTime } from './deadline.ts';
import type { PageCode } from './page-code.ts';
import { processMessages } from './process-messages.ts';
import type { WorkTimer } from './work-timer.ts';

export interface TaskContext extends MediaContext {
  /** For the code of a route, if it has some. */
  codeOf(taskId: number, name: string): PageCode;
  onQuality(delta: QualityDelta): void;
  /** Where the time of the batch goes. */
  timer?: Pick<WorkTimer, 'begin' | 'end' | 'during'>;
  /** The answer is there: from here on the page is processed, as soon as the result says so. */
  onAnswer?: () => Promise<void> | null;
  /** Null, or what to wait for before more pages are fetched: the archive is slower than the network. */
  pressure(): Promise<void> | null;
}

/** Fetches one URL and says what became of it. Never rejects because of a site or a handler. */
export async function processTask(task: BatchTask, context: TaskContext): Promise<Outcome> {
  const route = routeOf(context.job, task.url, task.route);
  if (route?.kind === 'messages') return processMessages(task, context.clock);
  if (route?.kind === 'media') return processMedia(task, route, context);
  const answer = await visit(
    task,
    context,
    route?.kind === 'sitemap'
      ? sitemapVisit(task.url)
      : {
          bodyBytesMax: context.job.spec.limits.bodyBytes,
          render: route?.render ?? undefined,
          ...(archivePartsOf(context.job.spec)?.subresources ? { wantsResources: true } : {}),
        },
  );
  const turn = context.onAnswer?.();
  if (turn) await turn;
  if (answer.kind === 'over') {
    const { outcome, answer: response } = answer;
    if (response && outcome.kind === 'unchanged')
      context.keep.revisit(task.url, response, outcome.trace.startedAt, task.lastVisit);
    return overOf(answer, context, (known) =>
      response ? keepFailed(task, route, context, known, response) : known,
    );
  }
  const { response, trace } = answer;
  const contentType = sniffMediaType(response.body, headerOf(response.rawHeaders, 'content-type'));
  if (answer.kind === 'redirect') {
    const page = store(task, context.keep, response, {
      contentType,
      trace,
      route: task.route,
      robotsTags: null,
    });
    return { kind: 'redirected', taskId: task.id, to: answer.to, page, trace };
  }
  const block = detectBlock(
    { ...response, isHtml: isHtml(contentType), url: task.url },
    context.job.spec.blocking,
  );
  // What the route requires tells: a page that has it is not blocked, whatever it looks like.
  if (block && !route?.proves) {
    const outcome = failed(task.id, block.code, block.evidence, trace);
    return overOf({ outcome, ...snapshotOf(response) }, context, (known) =>
      keepFailed(task, route, context, known, response),
    );
  }
  return new PageProcessor(task, route, context, response, trace, contentType, block).outcome();
}

/** Larger ones are no block pages and no error messages, and not worth their place in the archive. */
const FAILED_BYTES_MAX = 1024 * 1024;

/** The body of a blocked page is kept, for people and for `reparse` under other rules; other errors where the job asks for it. */
function keepFailed(
  task: BatchTask,
  route: CompiledRoute | null,
  context: TaskContext,
  outcome: Outcome,
  response: FetchResponse,
): Outcome {
  if (outcome.kind !== 'failed' || outcome.trace === null || response.body.length > FAILED_BYTES_MAX)
    return outcome;
  const contentType = sniffMediaType(response.body, headerOf(response.rawHeaders, 'content-type'));
  const about = { contentType, trace: outcome.trace, route: route?.name ?? null, robotsTags: null };
  const page = store(task, context.keep, response, about);
  // An error of today must not take the place of the page that the task has.
  return FAILURES[outcome.code].retry === 'blocked' || task.lastVisit === null
    ? { ...outcome, page }
    : outcome;
}

/** The snapshot is stored first: a part that leaves between a page in the archive and its outcome would have only one of them. */
function overOf(
  { outcome, snapshot }: { outcome: Outcome; snapshot?: Snapshot },
  context: TaskContext,
  keep: (outcome: Outcome) => Outcome,
): Outcome | Promise<Outcome> {
  return snapshot ? withSnapshot(outcome, snapshot, context).then(keep) : keep(outcome);
}

/** Takes from one page what its route asks for. */
class PageProcessor {
  readonly #task: BatchTask;
  readonly #route: CompiledRoute | null;
  readonly #context: TaskContext;
  readonly #response: FetchResponse;
  #trace: Trace;
  readonly #shots: NamedShot[];
  readonly #page: Page;
  readonly #robotsTags: string | null;
  readonly #may: Permissions;
  /** What it looks like, unless the route finds what it requires. */
  readonly #suspected: Block | null;

  constructor(
    task: BatchTask,
    route: CompiledRoute | null,
    context: TaskContext,
    response: FetchResponse,
    trace: Trace,
    contentType: string | null,
    suspected: Block | null,
  ) {
    this.#suspected = suspected;
    this.#task = task;
    this.#route = route;
    this.#context = context;
    this.#response = response;
    this.#trace = trace;
    const { rendered } = response;
    this.#shots = rendered ? nameShots(rendered.shots) : [];
    this.#page = new Page({
      url: task.url,
      status: response.status,
      contentType,
      contentTypeHeader: headerOf(response.rawHeaders, 'content-type'),
      headers: response.rawHeaders,
      body: response.body,
      route: route?.name ?? null,
      meta: task.meta,
      ...(rendered ? { captured: rendered.captured, screenshots: this.#shots.map(({ ref }) => ref) } : {}),
    });
    const { spec, headers } = context.job;
    this.#robotsTags = robotsTagsOf(this.#page, headers['user-agent']!);
    this.#may = permissionsOf(this.#robotsTags, spec.politeness.robotsTags);
  }

  async outcome(): Promise<Outcome> {
    const task = this.#task;
    if (this.#shots.length > 0 && this.#may.archive && !(await this.#storeShots()))
      return { kind: 'deferred', taskId: task.id };
    if (
      !this.#suspected &&
      task.lastVisit !== null &&
      task.lastVisit.sha256 === hash('sha256', this.#response.body, 'hex')
    ) {
      if (this.#may.archive)
        this.#context.keep.revisit(task.url, this.#response, this.#trace.startedAt, task.lastVisit);
      return { kind: 'unchanged', taskId: task.id, page: this.#store(false), trace: this.#trace };
    }
    let read: ReadResult | typeof OVER;
    let list: SitemapLinks | null = null;
    let shows: Discovered[] = [];
    try {
      if (this.#route?.kind === 'sitemap') list = await this.#list();
      else if (this.#mayBeList()) list = await listInstead(this.#page, this.#task, this.#context);
      read = list === null || this.#route?.kind === 'sitemap' ? this.#permitted(await this.#read()) : NOTHING;
      if (read !== OVER && this.#may.media) shows = this.#route?.findMedia?.(this.#page, read.values) ?? [];
    } catch (error) {
      const code = error instanceof ValidationError ? 'validation' : 'parse-error';
      const block = code === 'validation' ? this.#blockInstead() : null;
      if (block) {
        const outcome = failed(task.id, block.code, `${block.evidence}; ${messageOf(error)}`, this.#trace);
        return keepFailed(task, this.#route, this.#context, outcome, this.#response);
      }
      const shell = this.#shellInstead(null);
      if (shell) return failed(task.id, 'script-only', `${shell}; ${messageOf(error)}`, this.#trace);
      const detail = code === 'parse-error' ? describeCodeError(error) : messageOf(error);
      return { ...failed(task.id, code, detail, this.#trace), page: this.#store(true) };
    }
    if (read === OVER) return { kind: 'deferred', taskId: task.id };
    const shell = this.#shellInstead(read);
    if (shell) return failed(task.id, 'script-only', shell, this.#trace);
    let links: Discovered[];
    try {
      links = this.#may.links ? (list?.links ?? this.#links()) : [];
    } catch (error) {
      // A page that is made to take the selectors of links for ever.
      return { ...failed(task.id, 'parse-error', messageOf(error), this.#trace), page: this.#store(true) };
    }
    if (read.quality) this.#report(read.quality);
    return {
      kind: 'fetched',
      taskId: task.id,
      links: [...links, ...shows],
      records: read.drafts,
      shows: shows.map(({ url }) => url),
      page: this.#store(true),
      ...(list?.note ? { note: list.note } : {}),
      ...(list?.rejected ? { rejected: list.rejected } : {}),
      trace: this.#trace,
    };
  }

  #blockInstead(): Block | null {
    const answer = { ...this.#response, isHtml: isHtml(this.#page.contentType), url: this.#task.url };
    return this.#suspected ?? detectBlockOfLacking(answer, this.#context.job.spec.blocking);
  }

  /** What says that only a browser could make the page, where the route has one for that. */
  #shellInstead(read: ReadResult | null): string | null {
    const route = this.#route;
    if (!route?.isAuto || this.#response.rendered || !isHtml(this.#page.contentType)) return null;
    if (read && route.proves) return null;
    const isEmpty = read !== null && read.values.length > 0 && read.values.every(isBlankRecord);
    return needsScript(this.#page.text, { isEmpty });
  }

  async #storeShots(): Promise<boolean> {
    try {
      await storeShots(this.#shots, this.#context.blobs);
      this.#trace = { ...this.#trace, shots: this.#shots.map(({ ref }) => ref) };
      return true;
    } catch (error) {
      this.#context.onTrouble('cannot store a screenshot', error);
      return false;
    }
  }

  async #read(): Promise<ReadResult | typeof OVER> {
    const route = this.#route;
    const reader = route?.read ?? null;
    if (!reader) return NOTHING;
    const read = () => reader(this.#page);
    const leftMs = Math.max(1, this.#context.job.spec.timeouts.taskMs - this.#trace.durationMs);
    const result = route?.code ? this.#context.codeOf(this.#task.id, route.code).run(leftMs, read) : read();
    return result instanceof Promise ? withinTime(result, this.#context, this.#trace) : result;
  }

  /** Pages that may not be kept are read all the same: a handler may ask for links of theirs. */
  #permitted(read: ReadResult | typeof OVER): ReadResult | typeof OVER {
    return read === OVER || this.#may.records ? read : NOTHING;
  }

  /**
   * A URL that was given as it is: a sitemap or feed among them is meant as one. Fields of a route are read of HTML only, so
   * there is nothing to take from it; code of the job may read anything.
   */
  #mayBeList(): boolean {
    const { depth, route } = this.#task;
    const isForCode = this.#route?.read && this.#route.code !== null;
    return depth === 0 && route === null && !isForCode && !this.#response.rendered;
  }

  #list(): Promise<SitemapLinks> {
    const { job, clock } = this.#context;
    return sitemapLinks(this.#page, this.#task, job, clock.now());
  }

  #links(): Discovered[] {
    const { job } = this.#context;
    const { depth } = this.#task;
    const page = this.#page;
    // What can fail comes first: links that the others remember as reported must be reported.
    const further = this.#route?.paginate?.(page, job.spec) ?? [];
    const links = isHtml(page.contentType) && this.#follows() ? discoverLinks(page, job, depth) : [];
    return [...links, ...discoverFollowed(page, job, depth), ...further];
  }

  #follows(): boolean {
    return this.#route?.follow !== false;
  }

  #report(counts: Omit<QualityDelta, 'route'>): void {
    this.#context.onQuality({ route: this.#route!.name, ...counts });
  }

  #store(archived: boolean): StoredPage {
    const { contentType, route } = this.#page;
    const keep = archived && this.#may.archive ? this.#context.keep : keepNothing;
    return store(this.#task, keep, this.#response, {
      contentType,
      trace: this.#trace,
      route,
      robotsTags: this.#robotsTags,
    });
  }
}

/** What the page names if it is a list of URLs, with a line that says so; null when it is none. */
async function listInstead(
  page: Page,
  task: BatchTask,
  { job, clock }: TaskContext,
): Promise<SitemapLinks | null> {
  if (!mayBeSitemap(page.body, page.contentType)) return null;
  const list = await sitemapLinks(page, task, job, clock.now()).catch(() => null);
  if (list === null || list.links.length === 0) return null;
  // A text that is no list has lines that are no URLs.
  if (page.contentType === 'text/plain' && list.rejected !== null) return null;
  const note = `read as a list of ${list.links.length} URLs`;
  return { ...list, note: list.note === null ? note : `${note}; ${list.note}` };
}

const NOTHING: ReadResult = { drafts: [], values: [], quality: null };

function store(
  task: BatchTask,
  keep: PageArchiver,
  response: FetchResponse,
  about: Pick<StoredPage, 'contentType' | 'route' | 'robotsTags'> & { trace: Trace },
): StoredPage {
  const { trace, ...described } = about;
  const sha256 = hash('sha256', response.body, 'hex');
  return {
    ...described,
    httpStatus: response.status,
    bytes: response.body.length,
    sha256,
    archive: keep.page(task.url, response, trace.startedAt, sha256),
    media: null,
    etag: headerOf(response.rawHeaders, 'etag'),
    lastModified: headerOf(response.rawHeaders, 'last-modified'),
  };
}
