import type { BatchTask, Report } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { isRefusal } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';
import { asOf } from '../../core/proxies/proxy-health.ts';
import { withSince } from '../../core/text/since.ts';
import type { Clock, Logger, Random } from '../../ports/ambient.ts';
import type { Job, Store } from '../../ports/store.ts';
import type { OpenBatch } from '../plan/open-batch.ts';
import { assignProxies, type LeftBehind } from './assign-proxies.ts';
import type { JobAccess } from './job-access.ts';
import { ProxySelector } from './proxy-selector.ts';

/** What was noted of a proxy is of no use after this long. */
const REMEMBERED_MS = 7 * 24 * 3_600_000;
/** How often the news of other coordinators is read. */
const READ_MS = 10_000;
const NOTHING_LEFT: LeftBehind = { outcomes: [], permits: [] };

/** Tasks whose proxy was the trouble. */
interface ProxyTrouble {
  /** Nothing was sent, as the proxy is down: not an attempt. */
  untried: Set<number>;
  /** Refused through a proxy of which the host may have enough: another is worth an attempt. */
  elsewhere: Set<number>;
}

/** What a job has access: proxies, and a remote scraping API. */
export class AccessAssigner {
  readonly #options: { store: Store; job: Job; clock: Clock; logger: Logger };
  readonly #access: JobAccess;
  readonly #proxies: ProxySelector;
  #cost = 0;
  #readAt = Number.NEGATIVE_INFINITY;
  #shortSince: number | null = null;

  constructor(
    access: JobAccess,
    options: { store: Store; job: Job; clock: Clock; logger: Logger; random: Random },
  ) {
    this.#access = access;
    this.#options = options;
    this.#proxies = new ProxySelector(access.pools, () => options.random.next());
  }

  /** What a batch needs to go access. What it cannot have stays behind. */
  attachSecrets({ batch }: Pick<OpenBatch, 'batch'>): LeftBehind {
    const { apiKey, headers, loginState, pools } = this.#access;
    if (loginState !== null && batch.needs === 'browser') batch.loginState = loginState;
    if (apiKey !== null && batch.tasks.some(({ fetchMethod }) => fetchMethod?.fetcher === 'api'))
      batch.apiKey = apiKey;
    const secret = batch.tasks.map(({ url }) => new URL(url).origin).filter((origin) => headers[origin]);
    if (secret.length > 0)
      batch.secretHeaders = Object.fromEntries(secret.map((origin) => [origin, headers[origin]!]));
    if (pools.length === 0) return NOTHING_LEFT;
    return assignProxies(batch, this.#proxies, this.#options.clock.now());
  }

  /** Comes before a report is settled, and says which of its failures are the proxies'. */
  note(open: OpenBatch, report: Report, outcomes: readonly Outcome[]): ProxyTrouble {
    const now = this.#options.clock.now();
    const trouble: ProxyTrouble = { untried: new Set(), elsewhere: new Set() };
    this.#proxies.note({ ...report, outcomes: [...outcomes] }, (id) => hostOf(open.tasks.get(id)), now);
    for (const outcome of outcomes) {
      const via = 'trace' in outcome ? outcome.trace?.via : undefined;
      this.#cost += via?.cost ?? 0;
      const task = open.tasks.get(outcome.taskId);
      if (outcome.kind !== 'failed' || !via?.proxy || !task) continue;
      if (outcome.code === 'proxy' && this.#proxies.isDown(via.proxy, now)) trouble.untried.add(task.id);
      const refused = isRefusal(outcome.code, outcome.trace?.httpStatus ?? null);
      if (!refused || task.attempt >= this.#options.job.spec.retry.attempts) continue;
      if (this.#proxies.isDoubtful(task.fetchMethod!.pool!, via.proxy, hostOf(task)!))
        trouble.elsewhere.add(task.id);
    }
    return trouble;
  }

  /** Why work waits, for people; told once in the log. */
  tellShortage(): string | null {
    const now = this.#options.clock.now();
    const message = this.#proxies.shortage(now);
    if (message === null) this.#shortSince = null;
    else if (this.#shortSince === null) {
      this.#shortSince = now;
      this.#options.logger.warn(message);
    }
    return message && withSince(message, now - (this.#shortSince ?? now));
  }

  /** Takes in what other runs and coordinators have learned, and writes down what is new here. */
  async exchange(): Promise<void> {
    const { store, job, clock } = this.#options;
    const now = clock.now();
    const changes = this.#proxies.takeChanges();
    if (changes.length > 0) await store.proxies.save(changes, now - REMEMBERED_MS);
    if (this.#cost > 0) {
      const cost = this.#cost;
      this.#cost = 0;
      await store.proxies.addCost(job.id, cost);
    }
    if (this.#access.pools.length === 0 || now - this.#readAt < READ_MS) return;
    const since = this.#readAt === Number.NEGATIVE_INFINITY ? now - REMEMBERED_MS : this.#readAt - READ_MS;
    this.#readAt = now;
    const rows = await store.proxies.load(since, LIMITS.proxyHostsMax);
    this.#proxies.learn(rows.map((row) => ({ ...row, health: asOf(row.health, now) })));
  }
}

function hostOf(task: BatchTask | undefined): string | null {
  return task ? new URL(task.url).host : null;
}
