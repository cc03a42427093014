import { Readable } from 'node:stream';
import { explainJob } from '../../../coordinator/explain/explain-job.ts';
import type { RunView } from '../../../coordinator/reports/run-view.ts';
import type { TimeLeft } from '../../../core/explain/explain.ts';
import type { Counters } from '../../../core/model.ts';
import type { Job } from '../../../ports/store.ts';
import type { ApiContext, Caller, RoutePlugin } from '../requests/access.ts';
import { isAdmin, jobOf, requireScope } from '../requests/callers.ts';
import { OpenRequests } from '../requests/open-requests.ts';
import { parseAs, snapshotQuery } from '../requests/options.ts';
import { viewOf } from './job-routes.ts';
import type { LiveDetails, LiveJob, Snapshot } from './snapshot.ts';

/**
 * What all jobs do now, once a second, as server-sent events. However many pages show it, it is read and written as JSON
 * once for each set of jobs that may be seen.
 */

const STEP_MS = 1_000;
const STREAMS_MAX = 500;
const STREAMS_OF_KEY_MAX = 125;
/** The newest jobs, and those that run, whatever their age. */
const NEWEST_MAX = 30;
const RUNNING_MAX = 50;
/** Rates of jobs that other processes run are told from their counts over this time. */
const RATE_MS = 15_000;
/** What explains such a job is looked up so often. */
const ETA_MS = 5_000;
/** A reader that has not taken so many snapshots gets the newest one next, and the others never. */
const BEHIND_MAX = 1;

type JobView = Awaited<ReturnType<typeof viewOf>>;

export const snapshotRoutes: RoutePlugin = (app, context) => {
  const topics = new Map<string, Topic>();
  const streams = new OpenRequests({
    what: 'streams of snapshots',
    max: STREAMS_MAX,
    keyMax: STREAMS_OF_KEY_MAX,
  });

  app.get('/snapshots', async (request, reply) => {
    requireScope(request.caller, 'read');
    const { job: id } = parseAs(snapshotQuery, request.query);
    const job = id === undefined ? null : (await jobOf(context, id, request.caller)).job;
    const gone = streams.takeStream(request.caller, reply);
    const audience = isAdmin(request.caller) || request.caller.keyId === null ? '' : request.caller.keyId;
    const key = `${audience} ${job?.id ?? ''}`;
    const topic = topics.get(key) ?? new Topic(context, request.caller, job);
    topics.set(key, topic);
    reply.raw.once('close', () => {
      if (topic.leave(gone)) topics.delete(key);
    });
    const events = Readable.from(topic.events(gone, request.caller), { objectMode: false, highWaterMark: 1 });
    return reply
      .headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no', connection: 'close' })
      .send(events);
  });
};

/** One set of jobs that somebody looks at. */
class Topic {
  readonly #context: ApiContext;
  readonly #caller: Caller;
  readonly #job: Job | null;
  readonly #readers = new Map<AbortController, { caller: Caller; queue: string[]; wake: () => void }>();
  readonly #rates = new Map<number, CountedRate>();
  #timer: NodeJS.Timeout | null = null;
  #isReading = false;
  #last: string | null = null;

  constructor(context: ApiContext, caller: Caller, job: Job | null) {
    this.#context = context;
    this.#caller = caller;
    this.#job = job;
  }

  /** True when no reader is left. */
  leave(reader: AbortController): boolean {
    this.#readers.get(reader)?.wake();
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return false;
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    return true;
  }

  async *events(reader: AbortController, caller: Caller): AsyncGenerator<string, void, void> {
    const state = { caller, queue: this.#last === null ? [] : [this.#last], wake: () => {} };
    this.#readers.set(reader, state);
    this.#timer ??= setInterval(() => void this.#tick(), STEP_MS);
    yield 'retry: 2000\n\n';
    if (this.#last === null) void this.#tick();
    while (!reader.signal.aborted) {
      const next = state.queue.shift();
      if (next !== undefined) yield next;
      else
        await new Promise<void>((resolve) => {
          state.wake = resolve;
        });
    }
  }

  async #tick(): Promise<void> {
    // While the store does not answer, one question is enough.
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      this.#last = `event: snapshot\ndata: ${JSON.stringify(await this.#read())}\n\n`;
      for (const [reader, { caller, queue, wake }] of this.#readers) {
        // A key that was revoked since.
        if (!(await this.#context.access.isKnown(caller))) {
          reader.abort();
          wake();
          continue;
        }
        if (queue.length >= BEHIND_MAX) queue.length = 0;
        queue.push(this.#last);
        wake();
      }
    } catch {
      // The next look tells; what is wrong with the store ends the server itself.
    } finally {
      this.#isReading = false;
    }
  }

  async #read(): Promise<Snapshot<JobView>> {
    const { reads, runner, now } = this.#context;
    const { keyId } = this.#caller;
    const owner = isAdmin(this.#caller) || keyId === null ? {} : { owner: keyId };
    const isSeen = (job: Job) => owner.owner === undefined || job.owner === owner.owner;
    const newest = await reads.jobs.listBefore({
      ...owner,
      before: Number.MAX_SAFE_INTEGER,
      limit: NEWEST_MAX,
    });
    const running = (await reads.jobs.running()).filter(isSeen).slice(0, RUNNING_MAX);
    const shown = new Map([...running, ...newest].map((job) => [job.id, job]));
    if (this.#job && !shown.has(this.#job.id)) {
      const own = await reads.jobs.byId(this.#job.id);
      if (own) shown.set(own.id, own);
    }
    for (const id of this.#rates.keys()) if (!shown.has(id)) this.#rates.delete(id);
    let details: LiveDetails | null = null;
    const jobs: Snapshot<JobView>['jobs'] = [];
    const views = await runner.views([...shown.keys()]);
    for (const job of [...shown.values()].sort((one, other) => other.id - one.id)) {
      const run = views.get(job.id);
      if (run && job.id === this.#job?.id) details = detailsOf(run);
      jobs.push({
        ...(await viewOf(this.#context, job)),
        live: run ? liveOf(run) : await this.#countedLive(job, now()),
      });
    }
    return { at: new Date(now()).toISOString(), jobs, details };
  }

  /** Another process may be at work on it: what its counts tell. */
  async #countedLive(job: Job, now: number): Promise<LiveJob | null> {
    if (job.state !== 'running') return null;
    const known = this.#rates.get(job.id) ?? new CountedRate();
    this.#rates.set(job.id, known);
    const { reads } = this.#context;
    if (known.isEtaOld(now)) known.setEta((await explainJob(reads, job, { isAlive: true })).eta, now);
    return known.add(await reads.jobs.counters(job.id), now, job);
  }
}

class CountedRate {
  #points: { at: number; pages: number; bytes: number }[] = [];
  #eta: TimeLeft | null = null;
  #etaAt = Number.NEGATIVE_INFINITY;

  isEtaOld(now: number): boolean {
    return now - this.#etaAt >= ETA_MS;
  }

  setEta(eta: TimeLeft | null, now: number): void {
    this.#eta = eta;
    this.#etaAt = now;
  }

  add({ done, unchanged, skipped, dead, pending, leased, bytes }: Counters, at: number, job: Job): LiveJob {
    const pages = done + unchanged + skipped + dead;
    this.#points = [...this.#points.filter((point) => at - point.at <= RATE_MS), { at, pages, bytes }];
    const first = this.#points[0]!;
    const seconds = (at - first.at) / 1_000;
    const perSecond = (grown: number) => (seconds > 0 ? Math.max(0, grown) / seconds : 0);
    const rate = perSecond(pages - first.pages);
    const eta = this.#eta;
    return {
      pages_per_second: rate,
      bytes_per_second: perSecond(bytes - first.bytes),
      eta_seconds: eta ? eta.seconds : rate > 0 ? (pending + leased) / rate : null,
      eta_band_seconds: eta && { low: eta.low, high: eta.high },
      discovering: false,
      elapsed_seconds: (at - job.passStartedAt) / 1_000,
      waiting_for: null,
      open_batches: 0,
      history: [],
      history_step_seconds: 0,
    };
  }
}

function liveOf(view: RunView): LiveJob {
  return {
    pages_per_second: view.pagesPerSecond,
    bytes_per_second: view.bytesPerSecond,
    eta_seconds: view.etaMs === null ? null : view.etaMs / 1_000,
    eta_band_seconds: view.etaBandMs
      ? { low: view.etaBandMs.low / 1_000, high: view.etaBandMs.high / 1_000 }
      : null,
    discovering: view.discovering,
    elapsed_seconds: view.elapsedMs / 1_000,
    waiting_for: view.waitingFor,
    open_batches: view.openBatches,
    history: view.history.slice(-120).map((rate) => Math.round(rate * 10) / 10),
    history_step_seconds: view.historyStepMs / 1_000,
  };
}

function detailsOf(view: RunView): LiveDetails {
  const { hosts, hostsTotal, workers, workersTotal, failures, skips, recent, warnings } = view;
  return {
    hosts,
    hosts_total: hostsTotal,
    workers,
    workers_total: workersTotal,
    failures,
    skips,
    recent,
    warnings,
  };
}
