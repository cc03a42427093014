import { FETCHER_KINDS } from '../escalation/escalation.ts';
import { SKIPS } from '../failures.ts';
import { isMediaRoute, type JobSpec, SITEMAP_ROUTE } from '../job-schema/job.ts';
import { LIMITS } from '../limits.ts';
import { RETRY_AFTER_MS_MAX } from '../retry/retry.ts';
import { isRobotsUrl, sitemapOrder } from '../sitemap/task.ts';
import { type CompiledFollow, compileFollow, isWithin, ruleFor } from '../url/scope.ts';
import { hostOfOrigin, originOf } from '../url/url-shape.ts';
import { isDataDeeper, isJsonDeeper } from '../values/nesting.ts';
import { type Batch, type BatchTask, type ProbeResult, WIRE_VERSION } from './batch.ts';
import {
  checkJar,
  demand,
  type Fields,
  isCount,
  isHex,
  isHttpUrl,
  isList,
  isNameOrNull,
  isObject,
  isStatus,
  isText,
  isTextOrNull,
  isTime,
  NAME_LENGTH_MAX,
  problemOf,
} from './shape.ts';

/**
 * Whether a report from another machine is one, as a whole, and one about this batch: its tasks, its hosts, links that
 * the job follows, blobs of its own. Written by hand: a report has thousands of links, and this takes a fiftieth of the
 * time that settling it takes. Quality figures and failure codes are looked at when it is settled: see `checkReport`.
 */

const SHOTS_MAX = 100;
/** Clocks that differ by more would have ended the permits before they began. */
const LATE_MS_MAX = 60_000;

/** Says what is wrong with a report, or null when nothing is. One for each batch. */
export function makeReportCheck(batch: Batch): (report: unknown) => string | null {
  const checker = new ReportChecker(batch);
  return (report) => problemOf(() => checker.check(report));
}

const MEDIA_KEY = /^media\/[0-9a-f]{2}\/[0-9a-f]{64}\.[a-z0-9]{1,16}$/;
/** What a worker puts behind the name that the batch gives a file. */
const FILE_ENDING = /^[.-][\w.-]{1,64}$/;
const PROBE_RESULTS = new Set<unknown>(['answered', 'refused', 'failed'] satisfies ProbeResult[]);
const SHOT_KINDS = new Set<unknown>(['screenshot', 'pdf', 'snapshot', 'snapshot-html']);
const FETCHERS = new Set<unknown>(FETCHER_KINDS);

/** A normalised http or https URL of this host, by what a normalised URL looks like: parsing takes ten times as long. */
function isUrlOf(url: unknown, host: string): url is string {
  if (typeof url !== 'string' || url.length > LIMITS.urlLengthMax) return false;
  const at = url.startsWith('http://') ? 7 : url.startsWith('https://') ? 8 : 0;
  return (
    at > 0 && url.startsWith(host, at) && url.charCodeAt(at + host.length) === 47 && !/[\0- \x7f]/.test(url)
  );
}

class ReportChecker {
  readonly #batch: Batch;
  readonly #tasks: ReadonlyMap<number, BatchTask>;
  readonly #scope: Pick<LinkScope, 'allows'>;
  readonly #hosts = new Set<string>();
  #archiveBytes = 0;

  constructor(batch: Batch) {
    this.#batch = batch;
    this.#tasks = new Map(batch.tasks.map((task) => [task.id, task]));
    this.#scope = batch.job.bundle === null ? scopeOf(batch.job.spec) : EVERYWHERE;
  }

  check(report: unknown): void {
    demand(isObject(report), 'it is not an object');
    demand(report.version === WIRE_VERSION, 'its version is another');
    demand(isCount(report.batchId) && isCount(report.part), 'its number');
    demand(typeof report.final === 'boolean', 'whether it is the last part');
    demand(isText(report.worker, NAME_LENGTH_MAX), 'the name of its worker');
    demand(isTime(report.startedAt) && isTime(report.durationMs), 'its times');
    demand(report.trouble == null || isText(report.trouble), 'its trouble');
    this.#archiveBytes = this.#checkFile(report.archive, this.#batch.archiveKey, 'archive');
    this.#checkFile(report.pack ?? null, this.#batch.packKey, 'pack');
    this.#checkPermits(report.permits);
    this.#checkRobots(report.robots);
    this.#checkOutcomes(report.outcomes);
    this.#checkFound(report.found);
    this.#checkCookies(report.cookies);
    this.#checkFaults(report.proxyFaults);
    demand(isList(report.quality), 'its quality figures');
  }

  /** Its size; zero when there is none. */
  #checkFile(file: unknown, key: string, name: string): number {
    if (file === null) return 0;
    demand(isObject(file) && isCount(file.bytes), `its ${name}`);
    demand(isKeyUnder(file.key, key), `its ${name} is not under the name that the batch gave it`);
    return file.bytes;
  }

  /** In the order of the batch; parts may leave out the last ones, or all. */
  #checkPermits(uses: unknown): void {
    const { permits, budgetMs } = this.#batch;
    demand(isList(uses, permits.length), 'its permits');
    for (const [index, use] of uses.entries()) {
      demand(isObject(use) && use.host === permits[index]!.host, 'a permit of another host');
      demand(isCount(use.sent) && typeof use.finished === 'boolean', 'the use of a permit');
      for (const time of [use.lastSentAt, use.firstSentAt ?? null])
        demand(
          // The host waits for so long.
          time === null || (isTime(time) && time <= permits[index]!.endAt + budgetMs + LATE_MS_MAX),
          'the times of a permit',
        );
      demand(use.underWay === undefined || isCount(use.underWay), 'the use of a permit');
      demand(use.smallestGapMs == null || Number.isFinite(use.smallestGapMs), 'the gap of a permit');
      demand(use.probe === undefined || PROBE_RESULTS.has(use.probe), 'the probe of a permit');
      if (use.probeFailure === undefined) continue;
      demand(isObject(use.probeFailure), 'the probe of a permit');
      this.#checkFailure(use.probeFailure);
      this.#checkTrace(use.probeFailure.trace, true);
    }
  }

  #checkRobots(answers: unknown): void {
    const { robots } = this.#batch;
    demand(isList(answers, robots.length), 'its robots.txt files');
    for (const answer of answers) {
      demand(isObject(answer), 'a robots.txt');
      demand(
        robots.some(({ origin }) => origin === answer.origin),
        'a robots.txt of another origin',
      );
      const { kind } = answer;
      if (kind === 'deferred') continue;
      if (kind === 'text') demand(isText(answer.text, LIMITS.robotsBytesMax), 'the text of a robots.txt');
      else if (kind === 'redirected') demand(isHttpUrl(answer.to), 'the redirect of a robots.txt');
      else if (kind === 'failed') this.#checkFailure(answer);
      else demand(kind === 'absent', 'a kind of robots.txt that does not exist');
      this.#checkTrace(answer.trace, kind === 'failed');
    }
  }

  #checkOutcomes(outcomes: unknown): void {
    demand(isList(outcomes, this.#tasks.size), 'its outcomes');
    const seen = new Set<unknown>();
    for (const outcome of outcomes) {
      demand(isObject(outcome), 'an outcome');
      const task = this.#tasks.get(outcome.taskId as number);
      demand(task !== undefined, 'an outcome of a task that is not in the batch');
      demand(!seen.has(task.id), 'two outcomes of one task');
      seen.add(task.id);
      this.#checkOutcome(outcome, task);
    }
  }

  #checkOutcome(outcome: Fields, task: BatchTask): void {
    switch (outcome.kind) {
      case 'fetched':
        this.#checkPage(outcome.page);
        this.#checkLinks(outcome.links, task);
        this.#checkRecords(outcome.records);
        demand(isList(outcome.shows) && outcome.shows.every(isHttpUrl), 'the media of a page');
        demand(outcome.note === undefined || isText(outcome.note), 'the note of a page');
        this.#checkRejected(outcome.rejected);
        this.#checkTrace(outcome.trace);
        break;
      case 'unchanged':
        if (outcome.page !== null) this.#checkPage(outcome.page);
        this.#checkTrace(outcome.trace);
        break;
      case 'redirected':
        demand(isHttpUrl(outcome.to), 'the redirect of a page');
        this.#checkPage(outcome.page);
        this.#checkTrace(outcome.trace);
        break;
      case 'skipped':
        demand(
          isText(outcome.code, NAME_LENGTH_MAX) && Object.hasOwn(SKIPS, outcome.code),
          'the code of a skip',
        );
        demand(isTextOrNull(outcome.detail), 'the detail of a skip');
        this.#checkTrace(outcome.trace, true);
        break;
      case 'failed':
        this.#checkFailure(outcome);
        if (outcome.page !== null) this.#checkPage(outcome.page);
        demand(
          outcome.retryAfterMs === null ||
            (isTime(outcome.retryAfterMs) && outcome.retryAfterMs <= RETRY_AFTER_MS_MAX),
          'the pause after a failure',
        );
        this.#checkTrace(outcome.trace, true);
        break;
      case 'deferred':
        // Only a dispatcher of the coordinator itself says when.
        demand(outcome.until === undefined, 'the time of a deferred task');
        break;
      default:
        demand(false, 'a kind of outcome that does not exist');
    }
  }

  #checkFailure({ code, detail }: Fields): void {
    demand(isText(code, NAME_LENGTH_MAX) && isText(detail), 'a failure');
  }

  #checkTrace(trace: unknown, mayBeNull = false): void {
    if (trace === null && mayBeNull) return;
    demand(isObject(trace), 'a trace');
    demand(isTime(trace.startedAt) && isTime(trace.durationMs), 'the times of a trace');
    demand(trace.httpStatus === null || isStatus(trace.httpStatus), 'the status of a trace');
    demand(isCount(trace.bytes), 'the size of a trace');
    if (trace.via !== undefined) this.#checkVia(trace.via);
    if (trace.shots === undefined) return;
    demand(isList(trace.shots, SHOTS_MAX), 'the pictures of a page');
    for (const shot of trace.shots) {
      demand(isObject(shot) && SHOT_KINDS.has(shot.kind) && isCount(shot.bytes), 'a picture of a page');
      demand(isText(shot.type, NAME_LENGTH_MAX), 'the type of a picture');
      demand(isText(shot.key) && MEDIA_KEY.test(shot.key), 'a picture that is not where pictures are');
    }
  }

  #checkVia(via: unknown): void {
    demand(isObject(via) && isCount(via.rung) && FETCHERS.has(via.fetcher), 'how a page was fetched');
    demand(isNameOrNull(via.identity) && isNameOrNull(via.proxy), 'the identity or proxy of a page');
    demand(via.cost === undefined || isTime(via.cost), 'the cost of a page');
  }

  #checkPage(page: unknown): void {
    demand(isObject(page), 'a page');
    demand(isNameOrNull(page.route) && isStatus(page.httpStatus), 'the route or status of a page');
    demand(isCount(page.bytes) && isHex(page.sha256, 64), 'the size or hash of a page');
    for (const text of [page.contentType, page.robotsTags, page.etag, page.lastModified])
      demand(isTextOrNull(text), 'the headers of a page');
    const { archive, media } = page;
    if (archive !== null) {
      demand(isObject(archive) && isCount(archive.offset) && isCount(archive.length), 'the place of a page');
      demand(archive.sha256 === undefined || isHex(archive.sha256, 64), 'the place of a page');
      demand(archive.offset + archive.length <= this.#archiveBytes, 'a page beyond the end of the archive');
    }
    if (media === null) return;
    demand(isObject(media) && isHex(media.md5, 32), 'an object');
    const isLoose = media.member === null && isText(media.key) && MEDIA_KEY.test(media.key);
    const isPacked = isText(media.member, NAME_LENGTH_MAX) && isKeyUnder(media.key, this.#batch.packKey);
    demand(isLoose || isPacked, 'an object that is not where objects are');
  }

  #checkLinks(links: unknown, task: BatchTask): void {
    demand(isList(links), 'the links of a page');
    for (const link of links) {
      demand(isObject(link) && isText(link.host, LIMITS.urlLengthMax), 'a link');
      const { url, host } = link;
      demand(isUrlOf(url, host) && this.#isHost(host), 'a link that is not an http or https URL');
      demand(Number.isSafeInteger(link.priority) && isNameOrNull(link.route), 'the route of a link');
      demand(link.listed === undefined || link.listed === true, 'whether a link is listed');
      demand(link.modifiedAt === undefined || isTime(link.modifiedAt), 'the time of a link');
      demand(!isDataDeeper(link.meta, LIMITS.dataNestingMax), 'the data of a link');
      demand(link.meta === undefined || isObject(link.meta), 'the data of a link');
      const { listed = false, route } = link as { listed?: true; route: string | null };
      demand(this.#scope.allows({ url, host, listed, route }, task), 'a link out of the scope of the job');
    }
  }

  /** Each host is parsed once for a batch. */
  #isHost(host: string): boolean {
    if (this.#hosts.has(host)) return true;
    if (URL.parse(`http://${host}/`)?.host !== host && URL.parse(`https://${host}/`)?.host !== host)
      return false;
    this.#hosts.add(host);
    return true;
  }

  #checkRecords(records: unknown): void {
    demand(isList(records), 'the records of a page');
    for (const record of records) {
      demand(isObject(record) && isText(record.key, NAME_LENGTH_MAX), 'a record');
      demand(isHex(record.hash, 64) && typeof record.merge === 'boolean', 'the hash of a record');
      demand(isText(record.json, LIMITS.recordBytesMax) && isRecordJson(record.json), 'the data of a record');
    }
  }

  #checkRejected(rejected: unknown): void {
    if (rejected === undefined) return;
    demand(isObject(rejected) && isCount(rejected.count) && isList(rejected.first), 'rejected entries');
    for (const entry of rejected.first)
      demand(isObject(entry) && isText(entry.place) && isText(entry.reason), 'a rejected entry');
  }

  #checkFound(found: unknown): void {
    if (found === undefined) return;
    demand(isList(found), 'its links');
    for (const one of found) {
      const task = isObject(one) ? this.#tasks.get(one.taskId as number) : undefined;
      demand(task !== undefined, 'links of a task that is not in the batch');
      this.#checkLinks((one as Fields).links, task);
    }
  }

  #checkCookies(jars: unknown): void {
    if (jars === undefined) return;
    demand(isList(jars), 'its cookies');
    const origins = new Set([
      ...this.#batch.tasks.map(({ url }) => originOf(url)),
      ...this.#batch.robots.map(({ url }) => originOf(url)),
    ]);
    for (const jar of jars) {
      checkJar(jar);
      demand(origins.has((jar as Fields).origin as string), 'cookies of another origin');
    }
  }

  #checkFaults(faults: unknown): void {
    if (faults === undefined) return;
    demand(isList(faults), 'its proxies');
    const ids = new Set<unknown>(this.#batch.proxies?.map(({ id }) => id));
    for (const fault of faults)
      demand(
        isObject(fault) && ids.has(fault.id) && isCount(fault.count),
        'a proxy that is not in the batch',
      );
  }
}

function isKeyUnder(key: unknown, base: string): boolean {
  return isText(key, NAME_LENGTH_MAX) && key.startsWith(base) && FILE_ENDING.test(key.slice(base.length));
}

/** Stores read it again when they merge it with what they have. */
function isRecordJson(json: string): boolean {
  try {
    return isObject(JSON.parse(json)) && !isJsonDeeper(json, LIMITS.dataNestingMax);
  } catch {
    return false;
  }
}

interface CheckedLink {
  url: string;
  host: string;
  listed: boolean;
  route: string | null;
}

/** What the links of a job may lead to. */
class LinkScope {
  readonly #spec: JobSpec;
  readonly #rules: readonly CompiledFollow[];
  readonly #hasMedia: boolean;
  readonly #hasSitemaps: boolean;
  readonly #paginates: 'no' | 'site' | 'any';

  constructor(spec: JobSpec) {
    this.#spec = spec;
    this.#rules = spec.follow.map(compileFollow);
    this.#hasMedia = spec.routes.some(({ media }) => media.length > 0);
    this.#hasSitemaps = spec.routes.some(({ kind }) => kind === 'sitemap');
    const paginations = spec.routes.flatMap(({ paginate }) => paginate ?? []);
    // A template of URLs is the job's own.
    this.#paginates =
      paginations.length === 0 ? 'no' : paginations.some(({ url }) => url !== undefined) ? 'any' : 'site';
  }

  allows({ url, host, listed, route }: CheckedLink, task: BatchTask): boolean {
    const pageHost = hostOfOrigin(originOf(task.url));
    if (!listed) return ruleFor(this.#rules, url, host, pageHost) !== null;
    if (this.#hasMedia && isMediaRoute(this.#spec, route)) return true;
    if (this.#paginates !== 'no' && isWithin(this.#paginates, host, pageHost)) return true;
    if (!this.#hasSitemaps && task.route !== SITEMAP_ROUTE) return false;
    const order = sitemapOrder(task.meta);
    return isRobotsUrl(task.url) || isWithin(order.within, host, order.host ?? pageHost);
  }
}

/** Code of a job may follow any URL by name. */
const EVERYWHERE: Pick<LinkScope, 'allows'> = { allows: () => true };

const scopes = new WeakMap<JobSpec, LinkScope>();

/** Rules are compiled once for a job: its batches share the spec. */
function scopeOf(spec: JobSpec): LinkScope {
  let scope = scopes.get(spec);
  if (!scope) {
    scope = new LinkScope(spec);
    scopes.set(spec, scope);
  }
  return scope;
}
