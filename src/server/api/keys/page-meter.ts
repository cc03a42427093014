import { LruMap } from '../../../core/lru.ts';
import type { Job, Settlement, Store } from '../../../ports/store.ts';

const JOBS_REMEMBERED = 10_000;
const DAY_MS = 86_400_000;

interface PageMeterOptions {
  store: Pick<Store, 'jobs' | 'keys'>;
  now(): number;
  /** The key of the job has used what it may use today. */
  onUsedUp(jobId: number, message: string): void;
}

/**
 * Counts the pages of whole jobs and crawls against the limits of their keys when they are fetched: how many there are is not
 * known before. A job that reaches the limit of the day is stopped; batches that are under way then are still counted.
 */
export class PageMeter {
  readonly #options: PageMeterOptions;
  /** Owners of jobs that are counted here; null for the others. */
  readonly #owners = new LruMap<{ keyId: string | null }>(JOBS_REMEMBERED);

  constructor(options: PageMeterOptions) {
    this.#options = options;
  }

  async count({ jobId, tasks }: Settlement): Promise<void> {
    const pages = tasks.filter(({ to }) => to !== 'pending' && to !== 'skipped').length;
    if (pages === 0) return;
    const { store, now } = this.#options;
    const { keyId } = this.#owners.get(String(jobId)) ?? this.#remember(await store.jobs.get(jobId));
    if (keyId === null) return;
    const day = Math.floor(now() / DAY_MS);
    await store.keys.use(keyId, day, { pages, cost: 0 }, { pages: null, cost: null });
    const limit = (await store.keys.byId(keyId))?.limits.pagesPerDay ?? null;
    if (limit === null || (await store.keys.usage(keyId, day)).pages < limit) return;
    this.#options.onUsedUp(jobId, `the key has used its ${limit} pages of today; resume the job tomorrow`);
  }

  #remember({ id, owner, countsPages }: Job): { keyId: string | null } {
    const known = { keyId: countsPages ? owner : null };
    this.#owners.set(String(id), known);
    return known;
  }
}
