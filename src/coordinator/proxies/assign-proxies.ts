import type { Batch, BatchProxy, BatchTask, ProxyChoice } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { rowProxyOf } from '../../core/proxies/row-proxy.ts';
import type { Assignment, ProxySelector } from './proxy-selector.ts';

/** However long proxies rest: a resumed job may have another list, and another coordinator may have freed one. */
const WAIT_MS_MAX = 5_000;
/** Longer than hosts are planned ahead, or they would be looked at again at once. */
const WAIT_MS_MIN = 1_000;

/** What had to stay behind because no proxy is usable: it waits, or fails where there will be none in this run. */
export interface LeftBehind {
  outcomes: Outcome[];
  /** Permits of which no task could be sent, with when there will be a proxy. */
  permits: { permit: number; until: number }[];
}

/**
 * Gives each task whose fetch method names a pool the proxies that it may go through, and its robots.txt the same. A task
 * for which there is none is not sent, unless the job says that it may go without.
 */
export function assignProxies(batch: Batch, selector: ProxySelector, now: number): LeftBehind {
  const { spec } = batch.job;
  const list = new ProxyList();
  const lasting = new Map<string, Assignment>();
  const waiting = new Map<BatchTask, number>();
  const hopeless = new Map<BatchTask, string>();
  for (const task of batch.tasks) {
    const { fetchMethod } = task;
    if (!fetchMethod || fetchMethod.pool === null) continue;
    const { host } = new URL(task.url);
    const { country } = rowProxyOf(task.meta);
    const key = `${fetchMethod.pool} ${country ?? ''} ${host} ${fetchMethod.identity ?? ''}`;
    const asker = { host, identity: fetchMethod.identity, country };
    const given = lasting.get(key) ?? selector.assign(fetchMethod.pool, asker, now);
    // Where there is none, or one for all, the next task need not ask.
    if (given.kind !== 'proxies' || given.lasting) lasting.set(key, given);
    if (given.kind === 'proxies') task.through = list.choiceOf(given);
    else if (spec.proxies?.fallback === 'direct') task.fetchMethod = { ...fetchMethod, pool: null };
    else if (given.kind === 'never') hopeless.set(task, given.message);
    else waiting.set(task, Math.min(Math.max(given.until, now + WAIT_MS_MIN), now + WAIT_MS_MAX));
  }
  assignRobotsProxy(batch, (task) => waiting.has(task) || hopeless.has(task));
  if (list.proxies.length > 0) batch.proxies = list.proxies;
  return leftBehind(batch, waiting, hopeless);
}

/** Proxies of a batch, each named once. */
class ProxyList {
  readonly proxies: BatchProxy[] = [];
  readonly #indexes = new Map<string, number>();

  choiceOf({ proxies, perWorker }: Extract<Assignment, { kind: 'proxies' }>): ProxyChoice {
    const among = proxies.map((proxy) => {
      const known = this.#indexes.get(proxy.url);
      if (known !== undefined) return known;
      this.#indexes.set(proxy.url, this.proxies.length);
      return this.proxies.push(proxy) - 1;
    });
    return { among, ...(perWorker ? { perWorker: true } : {}) };
  }
}

/** robots.txt goes the way of the first task that it is wanted for; when none of them may go, nor does it. */
function assignRobotsProxy(batch: Batch, isLeft: (task: BatchTask) => boolean): void {
  batch.robots = batch.robots.filter((fetch) => {
    const wanted = batch.tasks.filter((task) => task.url.startsWith(`${fetch.origin}/`));
    const first = wanted.find((task) => !isLeft(task));
    // Through a proxy if one of them goes through one: a direct question would show the own address.
    const through = wanted.find((task) => task.through)?.through ?? first?.through;
    if (through) fetch.through = through;
    return first !== undefined;
  });
}

function leftBehind(
  batch: Batch,
  waiting: ReadonlyMap<BatchTask, number>,
  hopeless: ReadonlyMap<BatchTask, string>,
): LeftBehind {
  const permits = new Map<number, number>();
  for (const [task, until] of waiting)
    permits.set(task.permit, Math.min(until, permits.get(task.permit) ?? until));
  // The host may go on for its other tasks: then these wait by themselves.
  for (const task of batch.tasks) if (!waiting.has(task) && !hopeless.has(task)) permits.delete(task.permit);
  const deferred = [...waiting].map(
    ([task, until]): Outcome => ({
      kind: 'deferred',
      taskId: task.id,
      ...(permits.has(task.permit) ? {} : { until }),
    }),
  );
  const failed = [...hopeless].map(
    ([task, detail]): Outcome => ({
      ...{ kind: 'failed', taskId: task.id, code: 'no-proxy', detail },
      ...{ page: null, retryAfterMs: null, trace: null },
    }),
  );
  return {
    outcomes: [...deferred, ...failed],
    permits: [...permits].map(([permit, until]) => ({ permit, until })),
  };
}
