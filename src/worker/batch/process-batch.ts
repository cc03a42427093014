import { type Batch, type BatchTask, type Report, WIRE_VERSION } from '../../core/batch/batch.ts';
import type { Outcome, QualityDelta, RobotsOutcome } from '../../core/batch/outcome.ts';
import { givenBackPart } from '../../core/batch/report.ts';
import { BatchBytes } from '../../core/byte-limit/byte-limit.ts';
import {
  brokenCode,
  type CodeFailures,
  nextCodeFailures,
} from '../../core/circuit-breaker/circuit-breaker.ts';
import { messageOf, StorageFullError } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { archivePartsOf } from '../../core/job-schema/job.ts';
import { addressOf, permitAt } from '../../core/pace/address-pace.ts';
import { type Clock, type Random, startTimer } from '../../ports/ambient.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Fetcher } from '../../ports/fetcher.ts';
import type { JobCache } from '../compile-job.ts';
import { type MediaWriter, openMediaWriter } from '../media/media-writer.ts';
import { BatchProxies } from '../request/batch-proxies.ts';
import { type BatchCookies, openBatchCookies } from '../request/cookies.ts';
import { type SendContext, withSecretHeaders } from '../request/send.ts';
import { failed } from '../request/visit.ts';
import { type Archive, keepNothing, openArchive, pageArchiver } from '../storage/archive.ts';
import { Deadline } from './deadline.ts';
import { HostQueue } from './host-queue.ts';
import type { Lateness } from './pace.ts';
import { type CodeMarks, PageCode } from './page-code.ts';
import { deferUnstored, linksPart, QualitySum, splitLinks, unused } from './report-parts.ts';
import type { RequestGate } from './request-gate.ts';
import type { WantedHosts } from './wanted-hosts.ts';
import { WorkTimer } from './work-timer.ts';

/*
 * A batch on its way through a worker:
 * 1. Here: the job is compiled (../compile-job.ts), and each permit becomes a HostQueue.
 * 2. host-queue.ts takes the robots.txt files first, then the tasks, each when pace.ts lets the next request to the host
 *    leave.
 * 3. process-task.ts fetches the URL (../request/visit.ts judges the answer, send.ts adds identity, cookies and proxy),
 *    and takes records, links and media from the page (../records, ../links, ../media).
 * 4. Here: outcomes are collected and reported, in parts while the batch runs (report-parts.ts). The archive and media
 *    files of a report are written before it leaves. When the budget is over (deadline.ts), the rest is deferred.
 */

export interface WorkerTools {
  name: string;
  fetcher: Fetcher;
  fetcherOf?: SendContext['fetcherOf'];
  openUserAgents?: SendContext['openUserAgents'];
  chromiumMajor?: SendContext['chromiumMajor'];
  blobs: Blobs;
  clock: Clock;
  random?: Random;
  /** How late this worker's timers are, over all its batches; shared by the process when absent. */
  lateness?: Lateness;
  /** Shares requests to hosts without a gap between the batches of this worker; absent: all that permits allow leave at once. */
  gate?: RequestGate;
  jobs: JobCache;
  /** How long this thread has computed so far, in milliseconds; not known when absent. */
  busyMs?: () => number;
  /** Where others see which page's code runs. */
  marks?: CodeMarks;
}

interface BatchOptions {
  /** Gets finished outcomes of a batch that takes long, so that they need not wait for its slowest host. */
  onPart?: (report: Report) => void;
  /** Fires when the worker must leave: what is unfinished comes back as deferred. */
  drain?: AbortSignal;
  /** Lets others ask for hosts of the batch. */
  wanted?: WantedHosts;
}

/** Outcomes wait no longer than about this for the rest of their batch. */
const PART_AFTER_MS = 1_500;

/** THE function: the same in a thread, a BullMQ worker and a Lambda. Never rejects because of a site. */
export async function processBatch(
  batch: Batch,
  tools: WorkerTools,
  options: BatchOptions = {},
): Promise<Report> {
  const own = batch.secretHeaders ? withSecretHeaders(tools, batch.secretHeaders) : tools;
  const run = new BatchRun(batch, own, options);
  const cut = () => run.deadline.cut();
  options.drain?.addEventListener('abort', cut);
  if (options.drain?.aborted) cut();
  const stopParts = options.onPart ? repeat(tools.clock, PART_AFTER_MS, () => run.sendPart()) : null;
  try {
    return await run.finish();
  } finally {
    stopParts?.();
    options.drain?.removeEventListener('abort', cut);
    run.deadline.close();
  }
}

function repeat(clock: Clock, ms: number, run: () => void): () => void {
  const next = (): (() => void) =>
    startTimer(clock, ms, () => {
      stop = next();
      run();
    });
  let stop = next();
  return () => stop();
}

class BatchRun {
  readonly deadline: Deadline;
  readonly #batch: Batch;
  readonly #tools: WorkerTools;
  readonly #onPart: BatchOptions['onPart'];
  readonly #wanted: WantedHosts | null;
  readonly #startedAt: number;
  readonly #timer: WorkTimer;
  #queues: HostQueue[] | null = null;
  #outcomes: Outcome[] = [];
  #robots: RobotsOutcome[] = [];
  #quality = new QualitySum();
  #codeFailures: ReadonlyMap<string, CodeFailures> = new Map();
  #trouble: string | null = null;
  #storageFull = false;
  #archive: Archive | null = null;
  #mediaWriter: MediaWriter | null = null;
  #cookies: BatchCookies | null = null;
  readonly #proxies: BatchProxies | null;
  #part = 0;
  #hasCode = false;
  #sending: Promise<void> = Promise.resolve();

  constructor(batch: Batch, tools: WorkerTools, { onPart, wanted }: BatchOptions) {
    this.#batch = batch;
    this.#onPart = onPart;
    this.#wanted = wanted ?? null;
    this.#tools = tools;
    this.#startedAt = tools.clock.now();
    this.#timer = new WorkTimer(tools.clock, tools.busyMs ?? null);
    this.#proxies = batch.proxies ? new BatchProxies(batch.proxies, tools.name) : null;
    this.deadline = new Deadline(tools.clock, batch.budgetMs);
  }

  async finish(): Promise<Report> {
    const { gate } = this.#tools;
    const { priority = 0 } = this.#batch.job.spec;
    gate?.arrive(priority);
    try {
      this.#queues = await this.#openQueues();
      this.#timer.start();
      const runs = this.#queues.map((queue) => queue.run());
      this.#wanted?.onAsked((hosts) => this.#giveBack(hosts, runs));
      await Promise.all(runs);
      if (this.#hasCode) await untilErrorsShow();
    } catch (error) {
      this.#giveUp(`the worker cannot load the job: ${messageOf(error)}`);
    }
    try {
      await this.#sending;
      return await this.#report(true);
    } finally {
      // Not before its pages are stored: until then it is not done.
      gate?.depart(priority);
    }
  }

  /**
   * Others may have the hosts at once: what is under way there is told now, and what has not begun comes back when that is
   * over.
   */
  #giveBack(hosts: ReadonlySet<string>, runs: readonly Promise<void>[]): void {
    const { permits } = this.#batch;
    const given = permits.flatMap(({ host, gapMs }, index) =>
      hosts.has(host) && gapMs === 0 ? [index] : [],
    );
    if (!this.#onPart || given.length === 0) return;
    const underWay = new Map<number, number>();
    let isGiven = false;
    const tell = () => this.#onPart!(givenBackPart(this.#batch, this.#heading(), underWay));
    for (const index of given)
      this.#queues![index]!.giveBack((count) => {
        underWay.set(index, count);
        if (isGiven) tell();
      });
    isGiven = true;
    if (underWay.size === 0) return;
    tell();
    if (given.length < permits.length)
      void Promise.all(given.map((index) => runs[index])).then(() => this.#sendPartSoon());
  }

  /** All but a few late pages of the host are done: its next ones need not wait for those. */
  #tellLate(index: number, count: number): void {
    this.#onPart?.(givenBackPart(this.#batch, this.#heading(), new Map([[index, count]])));
    // A host in its slow start gets nothing more before it is known that it answers.
    if (this.#batch.permits[index]!.answered !== undefined) this.#sendPartSoon();
  }

  /** Not at once: a task that is just being processed may have its page in the archive already, and no outcome yet. */
  #sendPartSoon(): void {
    startTimer(this.#tools.clock, 0, () => this.sendPart());
  }

  /** Sends what is finished; the archive of a part is complete before its report leaves. */
  sendPart(): void {
    if (!this.#hasNews()) return;
    this.#sending = this.#sending.then(async () => {
      if (this.#hasNews()) this.#onPart?.(await this.#report(false));
    });
  }

  /** For a robots.txt that is asked at another host, hosts wait that are not in this batch. */
  #hasNews(): boolean {
    const isAwaited = this.#batch.robots.some((fetch) => fetch.for !== undefined);
    return this.#outcomes.length > 0 || (isAwaited && this.#robots.length > 0);
  }

  /** Where parts are taken, a long list goes ahead of its outcome, at once: no other part comes between them. */
  #take(outcome: Outcome): void {
    this.#codeFailures = nextCodeFailures(this.#codeFailures, [outcome]);
    // The report will end the job: what is left would be fetched in vain.
    if (brokenCode(this.#codeFailures) !== null) this.deadline.cut();
    const split = this.#onPart ? splitLinks(outcome) : null;
    for (const links of split?.ahead ?? [])
      this.#onPart?.(linksPart(this.#batch, this.#heading(), outcome.taskId, links));
    this.#outcomes.push(split?.rest ?? outcome);
  }

  async #openQueues(): Promise<HostQueue[]> {
    const { fetcher, fetcherOf, openUserAgents, chromiumMajor, clock, random, lateness, gate, jobs } =
      this.#tools;
    prepareBrowser(this.#batch, fetcherOf);
    const job = await jobs.get(this.#batch.job);
    this.#hasCode = job.routes.some((route) => route.code !== null);
    const { marks = null } = this.#tools;
    const kept = archivePartsOf(job.spec);
    if (this.#batch.cookies) this.#cookies = await openBatchCookies(this.#batch.cookies);
    const context = {
      job,
      fetcher,
      ...(fetcherOf ? { fetcherOf } : {}),
      ...(openUserAgents ? { openUserAgents } : {}),
      ...(chromiumMajor ? { chromiumMajor } : {}),
      cookies: this.#cookies,
      proxies: this.#proxies,
      apiKey: this.#batch.apiKey ?? null,
      loginState: this.#batch.loginState ?? null,
      jobKey: `${this.#batch.job.name} ${this.#batch.job.id}`,
      clock,
      ...(random ? { random } : {}),
      signal: this.deadline.signal,
      keep: kept ? pageArchiver((date) => this.#openArchive(date), kept) : keepNothing,
      blobs: this.#tools.blobs,
      media: { put: (item: Parameters<MediaWriter['put']>[0]) => this.#openMediaWriter().put(item) },
      codeOf: (taskId: number, name: string) =>
        new PageCode({
          batchId: this.#batch.id,
          taskId,
          name,
          marks,
          onLateError: (late, detail) => this.#failLate(late, detail),
        }),
      onQuality: (delta: QualityDelta) => this.#quality.add(delta),
      onTrouble: (what: string, error: unknown) => this.#noteTrouble(what, error),
      timer: this.#timer,
      pressure: () => this.#archive?.pressure() ?? this.#mediaWriter?.pressure() ?? null,
    };
    const events = {
      onOutcome: (outcome: Outcome) => this.#take(outcome),
      onRobots: (outcome: RobotsOutcome) => void this.#robots.push(outcome),
    };
    const { bytesMax, tasks: all } = this.#batch;
    const bytes = bytesMax === undefined ? null : new BatchBytes(bytesMax, all.length);
    const address = addressOf(this.#tools.name);
    return this.#batch.permits.map((granted, index) => {
      const permit = permitAt(granted, address);
      const tasks = inOrder(this.#batch.tasks.filter((task) => task.permit === index));
      const robots = this.#batch.robots.filter((fetch) => fetch.permit === index);
      const awaited = this.#batch.robots.filter((fetch) => fetch.for === index);
      const own = { ...events, onLate: (count: number) => this.#tellLate(index, count) };
      return new HostQueue({ permit, tasks, robots, awaited, bytes }, context, own, { lateness, gate });
    });
  }

  #openArchive(date: number): Archive {
    const { archiveKey, job } = this.#batch;
    this.#archive ??= openArchive(
      this.#tools.blobs,
      `${archiveKey}-${this.#part}.warc.gz`,
      {
        software: `Seine/${VERSION}`,
        job: job.name,
        date,
        robots: job.spec.politeness.robots ? 'obey' : 'ignore',
      },
      () => this.deadline.cut(),
    );
    return this.#archive;
  }

  /** What cannot be stored need not be fetched: the batch ends, and the coordinator waits until storing works again. */
  #noteTrouble(what: string, error: unknown): void {
    this.#trouble ??= `${what}: ${messageOf(error)}`;
    this.#storageFull ||= error instanceof StorageFullError;
    this.deadline.cut();
  }

  #openMediaWriter(): MediaWriter {
    const { packKey, job } = this.#batch;
    this.#mediaWriter ??= openMediaWriter(
      this.#tools.blobs,
      job.spec.media.pack,
      `${packKey}-${this.#part}.tar`,
      () => this.deadline.cut(),
    );
    return this.#mediaWriter;
  }

  #heading(): Pick<Report, 'part' | 'worker' | 'startedAt' | 'durationMs'> {
    const { name, clock } = this.#tools;
    const startedAt = this.#startedAt;
    return { part: this.#part++, worker: name, startedAt, durationMs: clock.now() - startedAt };
  }

  async #report(final: boolean): Promise<Report> {
    const heading = this.#heading();
    const archive = this.#archive;
    const mediaWriter = this.#mediaWriter;
    let outcomes = this.#outcomes;
    const robots = this.#robots;
    const quality = this.#quality.take();
    const cookies = this.#cookies?.takeChanges() ?? [];
    const proxyFaults = this.#proxies?.takeFaults() ?? [];
    this.#archive = null;
    this.#mediaWriter = null;
    this.#outcomes = [];
    this.#robots = [];
    const permits = this.#queues
      ? this.#queues.map((queue) => queue.takeUse())
      : this.#batch.permits.map(unused);
    let stored: Report['archive'] = null;
    let pack: Report['archive'] = null;
    try {
      stored = archive ? await this.#timer.during('archive', archive.commit()) : null;
    } catch (error) {
      outcomes = deferUnstored(outcomes, (page) => page.archive !== null);
      this.#noteTrouble('cannot write the archive', error);
    }
    try {
      pack = mediaWriter ? await this.#timer.during('archive', mediaWriter.commit()) : null;
    } catch (error) {
      outcomes = deferUnstored(outcomes, ({ media }) => media?.member != null);
      this.#noteTrouble('cannot write the shard', error);
    }
    const trouble = this.#trouble;
    const storageFull = this.#storageFull;
    this.#trouble = null;
    this.#storageFull = false;
    return {
      version: WIRE_VERSION,
      batchId: this.#batch.id,
      ...heading,
      durationMs: this.#tools.clock.now() - this.#startedAt,
      times: this.#timer.take(),
      final,
      permits,
      robots,
      outcomes,
      ...(cookies.length > 0 ? { cookies } : {}),
      ...(proxyFaults.length > 0 ? { proxyFaults } : {}),
      quality: trouble === null ? quality : [],
      archive: stored,
      pack,
      trouble,
      ...(storageFull ? { storageFull } : {}),
    };
  }

  /** False when the outcome has left with a report. */
  #failLate(taskId: number, detail: string): boolean {
    const index = this.#outcomes.findIndex((outcome) => outcome.taskId === taskId);
    const outcome = this.#outcomes[index];
    if (outcome?.kind === 'fetched')
      this.#outcomes[index] = { ...failed(taskId, 'parse-error', detail, outcome.trace), page: outcome.page };
    return outcome !== undefined;
  }

  /** Before any request was sent: every task fails the same way. */
  #giveUp(detail: string): void {
    const settled = new Set(this.#outcomes.map((outcome) => outcome.taskId));
    for (const task of this.#batch.tasks) {
      if (!settled.has(task.id)) this.#outcomes.push(failed(task.id, 'internal', detail, null));
    }
  }
}

/** A promise that was rejected just now, with nothing that awaits it, is told of before timers and I/O. */
function untilErrorsShow(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Starts the browser now: until it is there, the batch works on its other tasks. What goes wrong shows when a task asks
 * for it.
 */
export function prepareBrowser({ needs }: Batch, fetcherOf: SendContext['fetcherOf']): void {
  if (needs !== 'browser' || !fetcherOf) return;
  fetcherOf('browser')
    .then((browser) => browser.prepare?.())
    .catch(() => {});
}

/**
 * Those that can begin at once come first, and pages that failed before last, so that they hold up no others of their
 * permit; otherwise in their order.
 */
export function inOrder(tasks: BatchTask[]): BatchTask[] {
  const rankOf = ({ fetchMethod, attempt }: BatchTask) =>
    (fetchMethod?.fetcher === 'browser' ? 2 : 0) + (attempt > 1 ? 1 : 0);
  return tasks.toSorted((one, other) => rankOf(one) - rankOf(other));
}
