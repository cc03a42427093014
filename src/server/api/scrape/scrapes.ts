import { toNewTask } from '../../../coordinator/sources/new-task.ts';
import type { Job, NumberedTask, Store } from '../../../ports/store.ts';
import type { Forecasts } from '../cost/forecasts.ts';
import { checkQuote } from '../cost/quote.ts';
import type { ScrapeRequest } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import type { AcceptedScrape, Caller, ScrapeCalls } from '../requests/work.ts';
import { ScrapeJobs } from './api-jobs.ts';
import { isFinished } from './results.ts';
import type { SettleWatch } from './settle-watch.ts';

/** Waiting is told by the settle; a batch that was lost, or that another server settles, is noticed by a look. */
const LOOK_MS = 1_000;

interface ScrapesOptions {
  store: Store;
  watch: SettleWatch;
  forecasts: Forecasts;
  start(job: Job): void;
  allowPrivate: boolean;
  now(): number;
}

/** Writes single pages down, and waits for them, in the thread that settles them. */
export class Scrapes implements ScrapeCalls {
  readonly #options: ScrapesOptions;
  readonly #jobs: ScrapeJobs;

  constructor(options: ScrapesOptions) {
    this.#options = options;
    this.#jobs = new ScrapeJobs(options);
  }

  async scrape(asked: ScrapeRequest, caller: Caller, waitMs: number) {
    const accepted = await this.accept(asked, caller);
    return { ...accepted, task: await this.finished(accepted.taskId, waitMs) };
  }

  async accept(asked: ScrapeRequest, caller: Caller): Promise<AcceptedScrape> {
    const { store, start, now } = this.#options;
    const job = await this.#jobs.of(caller, asked);
    const task = toNewTask({ url: asked.url, meta: asked.meta ?? null }, job.spec, asked.priority);
    if (typeof task === 'string') throw new Problem('bad-url', task);
    if (asked.max_cost_usd !== undefined) await this.#quote(job, task.url, asked.max_cost_usd);
    const known = await store.views.taskId(job.id, task.url);
    if (known !== null) {
      const isYoung = asked.max_age > 0 && (await this.#ageOf(known)) <= asked.max_age * 1_000;
      if (!isYoung) await store.frontier.revisit(job.id, known);
    } else {
      const options = { now: now(), perTemplateMax: null, source: null, added: { rejected: 0 } };
      await store.frontier.enqueue(job.id, [task], options);
    }
    const taskId = known ?? (await store.views.taskId(job.id, task.url));
    if (taskId === null) throw new Error('a task was not found after it was written');
    start(job);
    return { jobId: job.id, taskId };
  }

  async finished(taskId: number, waitMs: number): Promise<NumberedTask | null> {
    const { store, watch, now } = this.#options;
    const until = now() + waitMs;
    while (true) {
      const left = until - now();
      const settled = watch.wait(taskId, Math.max(0, Math.min(LOOK_MS, left)));
      const task = await store.views.numberedTask(taskId);
      if (task && isFinished(task)) return task;
      if (left <= 0) return null;
      await settled;
    }
  }

  async #quote(job: Job, url: string, maxCost: number): Promise<void> {
    const hosts = new Map([[URL.parse(url)?.host ?? '', 1]]);
    checkQuote(await this.#options.forecasts.ofHosts(job.spec, hosts, job.owner), maxCost);
  }

  async #ageOf(taskId: number): Promise<number> {
    const { store, now } = this.#options;
    const task = await store.views.numberedTask(taskId);
    if (task?.state !== 'done' && task?.state !== 'unchanged') return Number.POSITIVE_INFINITY;
    return task.fetchedAt === null ? Number.POSITIVE_INFINITY : now() - Date.parse(task.fetchedAt);
  }
}
