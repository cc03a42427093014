import { messageOf } from '../../core/errors.ts';
import { SITEMAP_ROUTE } from '../../core/job-schema/job.ts';
import type { NewTask } from '../../core/model.ts';
import { revisitBoundsOf } from '../../core/revisits/revisit-interval.ts';
import { type Clock, type Logger, startTimer } from '../../ports/ambient.ts';
import type { Source, SourceRow } from '../../ports/source.ts';
import { REOPENED_SOURCE, type SourcePosition } from '../../ports/store/job-store.ts';
import type { Job, Store } from '../../ports/store.ts';
import { HostGroups } from '../hosts/host-groups.ts';
import type { TaskPriorities } from '../priority/task-priorities.ts';
import { toNewTask } from './new-task.ts';
import { RejectLog } from './reject-log.ts';

/** Rows of one enqueue: large enough to be cheap, small enough not to hold up settling. */
const CHUNK_ROWS = 2_000;
/** Tasks of an earlier pass looked at in one step. */
const REOPEN_ROWS = 2_000;
/** A slow source must not keep its first rows back. */
const CHUNK_MS = 200;
/** How often is asked whether the sources are free. */
const TAKE_MS = 250;
/** How often is asked whether the frontier has room. */
const ROOM_MS = 50;

interface FeederOptions {
  store: Store;
  job: Job;
  sources: readonly Source[];
  clock: Clock;
  logger: Logger;
  rejects?: RejectLog;
  /** What rates are counted by; by names alone when absent. */
  groups?: HostGroups;
  /** Shared with the coordinator, which keeps them up to date. */
  priorities?: TaskPriorities;
}

/** Reads the job's sources into the frontier, a window ahead of the work. */
export class SourceFeeder {
  readonly #options: FeederOptions;
  /** Rows that could not be used, also those of sitemaps that are tasks. */
  readonly rejects: RejectLog;
  readonly #groups: HostGroups;
  #running: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  #done = false;
  #failure: unknown = null;
  /** Of the present source; null where it is not known. */
  #share: number | null = null;
  #current = 0;

  constructor(options: FeederOptions) {
    this.#options = options;
    this.rejects = options.rejects ?? new RejectLog(options.logger);
    this.#groups = options.groups ?? new HostGroups(options);
  }

  /** Every source is read to its end, or has failed for good. */
  get done(): boolean {
    return this.#done;
  }

  /** How much of all sources is read, 0 to 1; null where it is not known. */
  get shareRead(): number | null {
    const { sources } = this.#options;
    if (this.#done) return 1;
    return this.#share === null ? null : (this.#current + this.#share) / sources.length;
  }

  get failure(): unknown {
    return this.#failure;
  }

  start(onProgress: () => void): void {
    this.#running = this.#feed(onProgress).catch((error: unknown) => {
      this.#failure = error;
      this.#done = true;
      this.#options.logger.error(`a source failed: ${messageOf(error)}`);
      onProgress();
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #feed(onProgress: () => void): Promise<void> {
    const { store, job, sources } = this.#options;
    while (!(await store.jobs.takeSources(job.id))) {
      // Another coordinator reads them. Should it end before they do, its place is free.
      if (this.#stopping.signal.aborted) return;
      await this.#pause(TAKE_MS);
    }
    const positions = new Map((await store.jobs.sources(job.id)).map((entry) => [entry.source, entry]));
    const startOf = (source: number): SourcePosition =>
      positions.get(source) ?? { source, position: null, done: false, rows: 0, rejected: 0 };
    if (job.pass > 1) await this.#reopen(startOf(REOPENED_SOURCE), onProgress);
    if (this.#stopping.signal.aborted) return;
    const { signal } = this.#stopping;
    const passStop = (error: unknown) => {
      if (!signal.aborted || error !== signal.reason) throw error;
    };
    for (const [index, source] of sources.entries()) {
      const start = startOf(index);
      this.#current = index;
      this.#share = null;
      if (!start.done) await this.#feedOne(source, start, onProgress).catch(passStop);
      if (this.#stopping.signal.aborted) return;
    }
    this.#done = true;
    onProgress();
  }

  async #feedOne(source: Source, start: SourcePosition, onProgress: () => void): Promise<void> {
    const { clock, job } = this.#options;
    const { signal } = this.#stopping;
    const chunkRows = Math.min(CHUNK_ROWS, job.spec.limits.window);
    const at = { ...start };
    let chunk: NewTask[] = [];
    let rows = 0;
    let flushAt = clock.now() + CHUNK_MS;
    let repeats = 0;
    for await (const item of source.rows(start.position, { signal })) {
      at.position = item.position;
      at.rows++;
      rows++;
      const task = this.#toTask(source, item);
      if (task) chunk.push(task);
      else at.rejected++;
      if (!source.isLive && rows < chunkRows && clock.now() < flushAt) continue;
      repeats += await this.#enqueue(chunk, at);
      this.#share = at.position === null ? null : ((await source.shareRead?.(at.position)) ?? null);
      onProgress();
      chunk = [];
      rows = 0;
      if (!(await this.#waitForRoom())) return;
      flushAt = clock.now() + CHUNK_MS;
    }
    repeats += await this.#enqueue(chunk, { ...at, done: true });
    if (repeats > 0)
      this.#options.logger.warn(
        `${source.name}: ${repeats === 1 ? 'a row repeats a URL' : `${repeats} rows repeat URLs`}; the columns of the first row are kept`,
      );
    onProgress();
  }

  /** Makes what earlier passes visited due again, a window at a time like any source. */
  async #reopen(start: SourcePosition, onProgress: () => void): Promise<void> {
    const { store, job, clock } = this.#options;
    const visitedBefore = job.passStartedAt - job.spec.revisit.afterSeconds * 1_000;
    const adapt = revisitBoundsOf(job.spec);
    const limit = Math.min(REOPEN_ROWS, job.spec.limits.window);
    let source = start;
    while (!source.done && (await this.#waitForRoom())) {
      const now = Math.floor(clock.now());
      const options = { now, visitedBefore, ...(adapt && { adapt }), limit, source };
      source = (await store.frontier.reopen(job.id, options)).source;
      onProgress();
    }
  }

  /** Returns how many rows brought nothing, though they have columns of their own. */
  async #enqueue(chunk: NewTask[], source: SourcePosition): Promise<number> {
    const { store, job, clock } = this.#options;
    await this.rejects.flush();
    const groupOf = await this.#groups.of(() => chunk.map(({ host }) => host));
    for (const task of chunk) task.host = groupOf(task.host);
    this.#options.priorities?.apply(chunk);
    const { duplicates } = await store.frontier.enqueue(job.id, chunk, {
      now: Math.floor(clock.now()),
      perTemplateMax: null,
      source: { ...source },
    });
    // In later passes all of them are there already.
    const matters =
      duplicates > 0 && job.pass === 1 && chunk.some(({ meta, route }) => meta !== null && !isOwn(route));
    return matters ? duplicates : 0;
  }

  /** Backpressure: sources wait while the frontier holds enough. False when the run stops. */
  async #waitForRoom(): Promise<boolean> {
    const { store, job } = this.#options;
    while (!this.#stopping.signal.aborted) {
      const { pending } = await store.jobs.counters(job.id);
      if (pending < job.spec.limits.window) return true;
      await this.#pause(ROOM_MS);
    }
    return false;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void startTimer(this.#options.clock, ms, resolve));
  }

  #toTask(source: Source, item: SourceRow): NewTask | null {
    const { spec } = this.#options.job;
    const result = 'reason' in item.row ? item.row.reason : toNewTask(item.row, spec, source.priority);
    if (typeof result !== 'string') return result;
    this.rejects.note({ source: source.name, place: item.place, reason: result });
    return null;
  }
}

/** What the tasks of sitemaps carry is ours. */
function isOwn(route: string | null): boolean {
  return route === SITEMAP_ROUTE;
}
