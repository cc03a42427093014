import { toNewTask } from '../../../coordinator/sources/new-task.ts';
import type { NewTask } from '../../../core/model.ts';
import type { SharedPool } from '../../../core/proxies/shared-pools.ts';
import { normalizeUrl, type UrlOptions, whyUnusable } from '../../../core/url/url.ts';
import type { Job, NumberedTask, Store } from '../../../ports/store.ts';
import type { Forecasts } from '../cost/forecasts.ts';
import { checkQuote } from '../cost/quote.ts';
import type { ScrapeRequest } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import type { AcceptedScrape, Caller, ScrapeCalls } from '../requests/work.ts';
import { ScrapeJobs, specOf } from './api-jobs.ts';
import { isFinished } from './results.ts';
import type { SettleWatch } from './settle-watch.ts';

/** Waiting is told by the settle; a batch that was lost, or that another server settles, is noticed by a look. */
const LOOK_MS = 1_000;

/**
 * With so many scrapes under way the next ones are gathered for so long: a transaction, a plan, a batch and an archive file
 * for each page cost 0.8 ms of CPU more than for several. A caller that waits for each page is not held up.
 */
const GATHER_FROM = 4;
const GATHER_MS = 8;

/** Whether a URL can be used does not depend on how its job spells it. */
const AS_GIVEN: UrlOptions = { stripTracking: false, sortQuery: false, trailingSlash: 'keep' };

interface Member {
  asked: ScrapeRequest;
  resolve(accepted: AcceptedScrape): void;
  reject(error: unknown): void;
}

interface FoundPage extends Pick<Member, 'resolve'> {
  task: NewTask;
  /** Null when the job does not have it yet. */
  taskId: number | null;
}

interface ScrapesOptions {
  store: Store;
  watch: SettleWatch;
  forecasts: Forecasts;
  start(job: Job): void;
  allowPrivate: boolean;
  proxyPools: ReadonlyMap<string, SharedPool>;
  now(): number;
}

/** Writes single pages down, and waits for them, in the thread that settles them. */
export class Scrapes implements ScrapeCalls {
  readonly #options: ScrapesOptions;
  readonly #jobs: ScrapeJobs;
  /** Scrapes that are about to be written, by the key of their job. */
  readonly #groups = new Map<string, Member[]>();
  /** Scrapes that are waited for. */
  #underWay = 0;

  constructor(options: ScrapesOptions) {
    this.#options = options;
    this.#jobs = new ScrapeJobs(options);
  }

  async scrape(asked: ScrapeRequest, caller: Caller, waitMs: number) {
    const accepted = await this.accept(asked, caller);
    return { ...accepted, task: await this.finished(accepted.taskId, waitMs) };
  }

  /** Those that come while others are under way are written down together, in one transaction and for one plan. */
  async accept(asked: ScrapeRequest, caller: Caller): Promise<AcceptedScrape> {
    // Before the job of these options is made: one that never gets a page would stand in the list of jobs.
    if (!normalizeUrl(asked.url, null, AS_GIVEN)) throw new Problem('bad-url', whyUnusable(asked.url));
    const key = this.#jobs.keyOf(caller, asked);
    if (asked.max_cost_usd !== undefined) await this.#quote(asked, caller, asked.max_cost_usd);
    return new Promise((resolve, reject) => {
      const group = this.#groups.get(key) ?? this.#openGroup(key, caller);
      group.push({ asked, resolve, reject });
    });
  }

  #openGroup(key: string, caller: Caller): Member[] {
    const group: Member[] = [];
    this.#groups.set(key, group);
    const write = () => {
      this.#groups.delete(key);
      this.#write(key, caller, group).catch((error: unknown) => {
        for (const { reject } of group) reject(error);
      });
    };
    if (this.#underWay >= GATHER_FROM) setTimeout(write, GATHER_MS);
    else setImmediate(write);
    return group;
  }

  async #write(key: string, caller: Caller, group: readonly Member[]): Promise<void> {
    const { store, start, now } = this.#options;
    const job = await this.#jobs.of(key, caller, group[0]!.asked);
    const found = await Promise.all(group.map((member) => this.#find(job, member)));
    const pages = found.filter((page) => page !== null);
    const tasks = pages.filter(({ taskId }) => taskId === null).map(({ task }) => task);
    if (tasks.length > 0) {
      const options = { now: now(), perTemplateMax: null, source: null, added: { rejected: 0 } };
      await store.frontier.enqueue(job.id, tasks, options);
    }
    await Promise.all(
      pages.map(async ({ task, taskId, resolve }) => {
        const id = taskId ?? (await store.views.taskId(job.id, task.url));
        if (id === null) throw new Error('a task was not found after it was written');
        resolve({ jobId: job.id, taskId: id });
      }),
    );
    start(job);
  }

  /** The page as a task; one that is known is fetched again, unless it is young enough. What is wrong with it is told to its caller alone. */
  async #find(job: Job, { asked, resolve, reject }: Member): Promise<FoundPage | null> {
    const { store } = this.#options;
    try {
      const task = toNewTask({ url: asked.url, meta: asked.meta ?? null }, job.spec, asked.priority);
      if (typeof task === 'string') throw new Problem('bad-url', task);
      const taskId = await store.views.taskId(job.id, task.url);
      if (taskId !== null) {
        const isYoung = asked.max_age > 0 && (await this.#ageOf(taskId)) <= asked.max_age * 1_000;
        if (!isYoung) await store.frontier.revisit(job.id, taskId);
      }
      return { task, taskId, resolve };
    } catch (error) {
      reject(error);
      return null;
    }
  }

  async finished(taskId: number, waitMs: number): Promise<NumberedTask | null> {
    this.#underWay++;
    try {
      return await this.#waitFor(taskId, waitMs);
    } finally {
      this.#underWay--;
    }
  }

  async #waitFor(taskId: number, waitMs: number): Promise<NumberedTask | null> {
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

  async #quote(asked: ScrapeRequest, caller: Caller, maxCost: number): Promise<void> {
    const hosts = new Map([[URL.parse(asked.url)?.host ?? '', 1]]);
    const spec = await specOf({ ...asked, max_cost_usd: undefined }, 'scrape', this.#options, caller);
    checkQuote(await this.#options.forecasts.ofHosts(spec, hosts, caller.keyId), maxCost);
  }

  async #ageOf(taskId: number): Promise<number> {
    const { store, now } = this.#options;
    const task = await store.views.numberedTask(taskId);
    if (task?.state !== 'done' && task?.state !== 'unchanged') return Number.POSITIVE_INFINITY;
    return task.fetchedAt === null ? Number.POSITIVE_INFINITY : now() - Date.parse(task.fetchedAt);
  }
}
