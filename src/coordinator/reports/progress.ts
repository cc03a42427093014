import type { Batch, BatchTask, Report } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { type FailureCode, failureKind, type SkipCode } from '../../core/failures.ts';
import { BoundedMap } from '../../core/lru.ts';
import type { Delivery } from '../../ports/dispatcher.ts';
import { BusiestHosts, type HostEntry } from './host-activity.ts';
import { FadingRate, RateRing } from './meters.ts';
import type { HostView, Notice, RunView, Tally, ViewInput } from './run-view.ts';

export type { RunView, ViewInput } from './run-view.ts';

export interface Progress {
  onDispatch(batch: Batch, now: number): void;
  /** Also for each part of a report. What is late or doubled changes nothing. */
  onDelivery(delivery: Delivery, now: number): void;
  note(text: string, now: number, level?: Notice['level']): void;
  /** Of the program itself, rather than of a page. */
  warn(text: string, now: number, level: 'warn' | 'error'): void;
  view(input: ViewInput): RunView;
}

const WORKERS_TRACKED_MAX = 1_000;
const HOSTS_SHOWN_MAX = 20;
const WORKERS_SHOWN_MAX = 16;
const RECENT_MAX = 8;
const WINDOW_MS = 10_000;
const BUCKET_MS = 500;
const HISTORY_BUCKETS = 240;
const GROWING_MS = 3_000;
const WARNINGS_MAX = 3;
/** A worker that has reported nothing for so long has left, or has nothing to do. */
const WORKER_GONE_MS = 60_000;
/** Reports come at least this often while anything moves. */
const STILL_MS = 3_000;
/** Shorter waits are the pace of a polite crawl. */
const PAUSE_SHOWN_MS = 2_000;

/** `hosts` by permit; `heardAt` is the time of dispatch, then of each part of the report. */
type OpenBatch = { heardAt: number; parts: Set<number>; tasks: BatchTask[]; hosts: HostEntry[] };
type WorkerEntry = { batches: number; tasks: number; lastSeenAt: number; rate: FadingRate };

export function createProgress(options: { startedAt: number }): Progress {
  return new RunProgress(options.startedAt);
}

function bump<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function tallies<K extends string>(counts: Map<K, number>): Tally<K>[] {
  const list = [...counts].map(([code, count]) => ({ code, count }));
  return list.sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
}

/** The store's own count by reason, when it was asked; it also knows of earlier runs. */
function reasons(input: ViewInput, state: string): Tally[] | null {
  if (input.tallies === undefined) return null;
  return tallies(
    new Map(input.tallies.filter((one) => one.state === state).map((one) => [one.code, one.count])),
  );
}

class RunProgress implements Progress {
  readonly #startedAt: number;
  readonly #open = new Map<number, OpenBatch>();
  readonly #hosts = new BusiestHosts();
  /** In the order in which they were last seen. */
  readonly #workers = new BoundedMap<string, WorkerEntry>(WORKERS_TRACKED_MAX);
  readonly #failures = new Map<FailureCode, number>();
  readonly #skips = new Map<SkipCode, number>();
  readonly #recent: Notice[] = [];
  readonly #warnings: Notice[] = [];
  readonly #pages = new RateRing(BUCKET_MS, HISTORY_BUCKETS);
  readonly #bytes = new RateRing(BUCKET_MS, HISTORY_BUCKETS);
  readonly #settled = new RateRing(BUCKET_MS, HISTORY_BUCKETS);
  #pagesTotal = 0;
  #settledTotal = 0;
  #acceptedSeen = 0;
  #grewAt: number;
  #heardAt: number;

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
    this.#grewAt = startedAt;
    this.#heardAt = startedAt;
  }

  onDispatch(batch: Batch, now: number): void {
    const hosts = batch.permits.map((permit) => this.#hosts.entry(permit.host, now));
    for (const host of hosts) host.openBatches++;
    this.#open.set(batch.id, { heardAt: now, parts: new Set(), tasks: batch.tasks, hosts });
  }

  onDelivery(delivery: Delivery, now: number): void {
    const id = delivery.kind === 'lost' ? delivery.batchId : delivery.report.batchId;
    const batch = this.#open.get(id);
    if (batch === undefined) return;
    this.#heardAt = now;
    if (delivery.kind === 'report') {
      if (batch.parts.has(delivery.report.part)) return;
      batch.parts.add(delivery.report.part);
      this.#onReport(batch, delivery.report, now);
    } else {
      this.note(`batch ${id} lost: ${delivery.reason}`, now, 'error');
    }
    // Taken out and put back, so that the first one is always the one not heard of for longest.
    this.#open.delete(id);
    if (delivery.kind === 'report' && !delivery.report.final) this.#open.set(id, { ...batch, heardAt: now });
    else for (const host of batch.hosts) host.openBatches--;
  }

  #onReport(batch: OpenBatch, report: Report, now: number): void {
    this.#seeWorker(report.worker, report.outcomes.length, now);
    for (const use of report.permits) this.#hosts.entry(use.host, now).requests += use.sent;
    let byId: Map<number, BatchTask> | null = null;
    for (let i = 0; i < report.outcomes.length; i++) {
      const outcome = report.outcomes[i]!;
      let task = batch.tasks[i];
      if (task?.id !== outcome.taskId) {
        byId ??= new Map(batch.tasks.map((one) => [one.id, one]));
        task = byId.get(outcome.taskId);
      }
      if (task !== undefined) this.#onOutcome(outcome, task, batch, now);
    }
    for (const robots of report.robots) {
      if (robots.kind === 'failed') this.note(`robots.txt ${robots.code}  ${robots.origin}`, now, 'warn');
    }
  }

  #onOutcome(outcome: Outcome, task: BatchTask, batch: OpenBatch, now: number): void {
    if (outcome.kind === 'deferred') return;
    // A batch reports once, seconds after its first page: what counts is when each request ended. A worker's
    // clock may be wrong, and a batch may be slower than the window, so the time is kept within both.
    const ended = outcome.trace === null ? now : outcome.trace.startedAt + outcome.trace.durationMs;
    const at = Math.min(now, Math.max(ended, batch.heardAt, now - WINDOW_MS));
    batch.hosts[task.permit]?.onOutcome(outcome, at);
    if (outcome.trace !== null) this.#bytes.add(at, outcome.trace.bytes);
    if (outcome.kind === 'skipped') bump(this.#skips, outcome.code);
    else if (outcome.kind === 'failed') {
      bump(this.#failures, outcome.code);
      const { retry } = failureKind(outcome.code);
      this.note(`${outcome.code}  ${task.url}`, at, retry === 'permanent' ? 'error' : 'warn');
      if (retry !== 'permanent') return;
    } else {
      this.#pages.add(at, 1);
      this.#pagesTotal++;
      if (outcome.kind === 'fetched' && outcome.note) this.note(`${outcome.note}  ${task.url}`, at);
    }
    this.#settled.add(at, 1);
    this.#settledTotal++;
  }

  #seeWorker(name: string, tasks: number, now: number): void {
    const rate = () => new FadingRate(now, WINDOW_MS);
    const entry = this.#workers.get(name) ?? { batches: 0, tasks: 0, lastSeenAt: now, rate: rate() };
    this.#workers.set(name, entry);
    entry.batches++;
    entry.tasks += tasks;
    entry.lastSeenAt = now;
    entry.rate.add(now, tasks);
  }

  note(text: string, now: number, level: Notice['level'] = 'info'): void {
    this.#recent.push({ at: now, level, text });
    if (this.#recent.length > RECENT_MAX) this.#recent.shift();
  }

  warn(text: string, now: number, level: 'warn' | 'error'): void {
    this.#warnings.push({ at: now, level, text });
    if (this.#warnings.length > WARNINGS_MAX) this.#warnings.shift();
  }

  /** Everything before this moment has been reported, or its batch is slower than the window. */
  #knownUntil(now: number): number {
    const oldest = this.#open.values().next().value;
    if (oldest === undefined) return now;
    const until = Math.min(now, Math.max(oldest.heardAt, now - WINDOW_MS));
    // Whole buckets only: a later batch may have reported the rest of this one already.
    return Math.floor(until / BUCKET_MS) * BUCKET_MS - 1;
  }

  /** A reason to wait is known, and nothing has come since: then nothing comes. */
  #isStill({ waitingFor, now }: ViewInput): boolean {
    return typeof waitingFor === 'string' && now - this.#heardAt > STILL_MS;
  }

  #etaMs(input: ViewInput, until: number): number | null {
    const { now, counters, job } = input;
    const { pages, seconds } = input.limits ?? { pages: null, seconds: null };
    const known = counters.pending + counters.leased;
    if (known === 0) return input.sourcesDone ? 0 : null;
    if (this.#isStill(input)) return null;
    const expected = known + unreadTasks(input);
    const remaining = pages === null ? expected : Math.min(expected, Math.max(0, pages - counters.attempted));
    const timeLeftMs =
      seconds === null ? Number.POSITIVE_INFINITY : Math.max(0, seconds * 1_000 - (now - this.#startedAt));
    if (this.#settledTotal === 0 || (job.state !== 'running' && job.state !== 'stopping')) return null;
    const waitMs = counters.leased === 0 ? Math.max(0, (input.nextDueAt ?? now) - now) : 0;
    const bounded = (ms: number) => Math.min(timeLeftMs, Math.max(waitMs, Math.ceil(ms)));
    const eta = input.explanation?.eta;
    // It knows the host that is the last. What has happened since is in the number of tasks.
    if (eta) return bounded((eta.seconds * 1_000 * remaining) / eta.tasks);
    const average = (this.#settledTotal * 1_000) / Math.max(1_000, now - this.#startedAt);
    // In a lull (every task waits for its retry) the window runs dry: the average keeps the answer finite.
    const recent = this.#settled.rate(until, WINDOW_MS, this.#startedAt);
    const rate = recent === 0 ? average : Math.max(recent, average / 10);
    return bounded((remaining * 1_000) / rate);
  }

  view(input: ViewInput): RunView {
    const { now, counters } = input;
    const elapsedMs = Math.max(0, now - this.#startedAt);
    if (counters.accepted > this.#acceptedSeen) this.#grewAt = now;
    this.#acceptedSeen = counters.accepted;
    const remaining = counters.pending + counters.leased;
    // While nothing can come, what has not been reported is not assumed.
    const isStill = this.#isStill(input);
    const until = isStill ? now : this.#knownUntil(now);
    const isUnknown = !input.sourcesDone && typeof input.sourcesRead !== 'number';
    const isGrowing = typeof input.sourcesRead !== 'number' || input.sourcesDone;
    const discovering = isUnknown || (isGrowing && remaining > 0 && now - this.#grewAt < GROWING_MS);
    const finished = counters.done + counters.unchanged + counters.skipped + counters.dead;
    const top = this.#hosts.top(now, input.hostsMax ?? HOSTS_SHOWN_MAX);
    const hosts = isStill ? top.map((host) => ({ ...host, requestsPerSecond: 0 })) : top;
    const alive = [...this.#workers].filter(([, { lastSeenAt }]) => now - lastSeenAt < WORKER_GONE_MS);
    const etaMs = this.#etaMs(input, until);
    const workers = alive.slice(-WORKERS_SHOWN_MAX).sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      job: { dir: null, unit: 'pages', ...input.job },
      waitingFor: input.waitingFor ?? pauseText(input, hosts),
      // Of the minutes before; now one thing alone stops everything, and `waitingFor` names it.
      explanation: isStill ? null : (input.explanation?.sentence ?? null),
      at: now,
      startedAt: this.#startedAt,
      elapsedMs,
      counters: { ...counters },
      fraction: fractionOf(input, finished, elapsedMs),
      pagesPerSecond: this.#pages.rate(until, WINDOW_MS, this.#startedAt),
      averagePagesPerSecond: (this.#pagesTotal * 1_000) / Math.max(1_000, elapsedMs),
      bytesPerSecond: this.#bytes.rate(until, WINDOW_MS, this.#startedAt),
      history: this.#pages.history(until, this.#startedAt),
      historyStepMs: BUCKET_MS,
      etaMs,
      etaBandMs: bandOf(input, etaMs),
      discovering,
      openBatches: this.#open.size,
      hosts,
      hostsTotal: this.#hosts.size,
      failures: tallies(this.#failures),
      skips: reasons(input, 'skipped') ?? tallies(this.#skips),
      dead: reasons(input, 'dead') ?? [],
      workers: workers.map(([name, { rate, ...rest }]) => ({
        name,
        ...rest,
        tasksPerSecond: isStill ? 0 : rate.perSecond(now),
      })),
      workersTotal: alive.length,
      recent: [...this.#recent],
      warnings: [...this.#warnings],
    };
  }
}

/** The band of the explanation, around what was made of it. */
function bandOf({ explanation }: ViewInput, etaMs: number | null): RunView['etaBandMs'] {
  const eta = explanation?.eta;
  if (!eta || eta.seconds === 0 || etaMs === null) return null;
  return { low: (etaMs * eta.low) / eta.seconds, high: (etaMs * eta.high) / eta.seconds };
}

/** Of what is known to be done before the job ends: all tasks, or as many as its limits let it. */
function fractionOf(input: ViewInput, finished: number, elapsedMs: number): number {
  const { counters, limits, sourcesDone } = input;
  const ofTasks = counters.accepted === 0 ? Number(sourcesDone) : finished / counters.accepted;
  const pages = limits?.pages ?? null;
  const seconds = limits?.seconds ?? null;
  const expected = counters.accepted + unreadTasks(input);
  const total = pages === null ? expected : Math.min(pages, expected);
  // Before all sources are read, a limit says more than the tasks so far.
  const isLimited = pages !== null && (!sourcesDone || counters.accepted > pages);
  const ofPages = isLimited ? counters.attempted / pages : total === 0 ? ofTasks : finished / total;
  return Math.min(1, Math.max(ofPages, seconds === null ? 0 : elapsedMs / (seconds * 1_000)));
}

/** Tasks that the rest of the sources will bring, as far as the bytes that are read tell. */
function unreadTasks({ counters, sourcesRead, sourcesDone }: ViewInput): number {
  if (sourcesDone || typeof sourcesRead !== 'number' || sourcesRead <= 0) return 0;
  return Math.round(counters.accepted * (1 / Math.min(1, sourcesRead) - 1));
}

/** When every task waits: for whom, and until when. */
function pauseText({ now, counters, nextDueAt, job }: ViewInput, hosts: readonly HostView[]): string | null {
  if (job.state !== 'running' || counters.leased > 0 || counters.pending === 0) return null;
  if (nextDueAt === undefined || nextDueAt === null || nextDueAt - now < PAUSE_SHOWN_MS) return null;
  const until = new Date(nextDueAt).toTimeString().slice(0, 8);
  const [first, ...others] = hosts.filter(({ state }) => state === 'throttled' || state === 'failing');
  if (!first) return `the next task is due at ${until}`;
  const more = others.length === 0 ? '' : ` and ${others.length} more hosts`;
  const failures = first.failing ? ` after ${first.failing.count} × ${first.failing.what}` : '';
  return `${first.host}${more} ${others.length === 0 ? 'pauses' : 'pause'} until ${until}${failures}`;
}
