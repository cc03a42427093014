import type { BatchProxy, ProxyChoice } from '../../core/batch/batch.ts';
import { failureOfStatus } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';
import { verdictOfCode } from '../../core/proxies/proxy-health.ts';
import { preferenceOf } from '../../core/proxies/proxy-pool.ts';
import type { FetchResult } from '../../ports/fetcher.ts';

export interface Sent {
  result: FetchResult;
  /** Id of the proxy that it came through. */
  proxy: string | null;
}

/** Refusals of a proxy by a host, with no success between, after which others are preferred within the batch. */
const REFUSALS_MAX = 2;
/** Failures in a row after which a proxy is not even tried any more within the batch. */
const FAILURES_MAX = 3;
const NONE_LEFT: FetchResult = {
  kind: 'failure',
  code: 'proxy',
  detail: 'no proxy of the batch works',
  bytes: 0,
};

/**
 * The proxies of one batch. Which of them a task may use was decided by the coordinator; what fails meanwhile is passed
 * over here, so that the rest of the batch need not meet it again.
 */
export class BatchProxies {
  readonly #proxies: readonly BatchProxy[];
  readonly #worker: string;
  /** Times that a proxy failed, for the report. */
  readonly #faults = new Map<string, number>();
  /** Failures since the last success. */
  readonly #failures = new Map<BatchProxy, number>();
  readonly #refusals = new Map<string, number>();

  constructor(proxies: readonly BatchProxy[], worker: string) {
    this.#proxies = proxies;
    this.#worker = worker;
  }

  /** Goes on to the next proxy when one fails by itself: nothing has reached the site then. */
  async send(
    choice: ProxyChoice,
    host: string,
    fetch: (proxy: BatchProxy) => Promise<FetchResult>,
  ): Promise<Sent> {
    const order = this.#order(choice, host).slice(0, LIMITS.proxiesPerTask);
    let failed: Sent | null = null;
    for (const proxy of order) {
      if ((this.#failures.get(proxy) ?? 0) >= FAILURES_MAX) continue;
      // The one before is not the one that the outcome will name.
      if (failed) this.blame(failed.proxy);
      const result = await fetch(proxy);
      this.#note(proxy, host, result);
      if (result.kind !== 'failure' || result.code !== 'proxy') return { result, proxy: proxy.id };
      failed = { result, proxy: proxy.id };
    }
    return failed ?? { result: NONE_LEFT, proxy: order[0]!.id };
  }

  /** For failures that no outcome will tell of. */
  blame(proxy: string | null): void {
    if (proxy !== null) this.#faults.set(proxy, (this.#faults.get(proxy) ?? 0) + 1);
  }

  /** Proxies that failed since the last call, without those that outcomes tell of. */
  takeFaults(): { id: string; count: number }[] {
    const faults = [...this.#faults].map(([id, count]) => ({ id, count }));
    this.#faults.clear();
    return faults;
  }

  /** What works, then what this host refuses, then what failed; all of them, for there must be one. */
  #order({ among, perWorker }: ProxyChoice, host: string): BatchProxy[] {
    const allowed = among.map((index) => this.#proxies[index]!);
    // Its own, and the same again in the next batch: the list changes only when one comes or goes.
    const ordered = perWorker ? preferenceOf(this.#worker, allowed) : allowed;
    if (this.#failures.size === 0 && this.#refusals.size === 0) return ordered;
    const rankOf = (proxy: BatchProxy) => {
      if (this.#failures.has(proxy)) return 2;
      return (this.#refusals.get(`${proxy.id} ${host}`) ?? 0) >= REFUSALS_MAX ? 1 : 0;
    };
    return [0, 1, 2].flatMap((rank) => ordered.filter((proxy) => rankOf(proxy) === rank));
  }

  #note(proxy: BatchProxy, host: string, result: FetchResult): void {
    if (result.kind === 'aborted') return;
    const code = result.kind === 'failure' ? result.code : failureOfStatus(result.status);
    const verdict = verdictOfCode(code);
    if (verdict === null) return;
    if (verdict === 'dead') {
      this.#failures.set(proxy, (this.#failures.get(proxy) ?? 0) + 1);
      return;
    }
    this.#failures.delete(proxy);
    const pair = `${proxy.id} ${host}`;
    if (verdict === 'good') this.#refusals.delete(pair);
    else this.#refusals.set(pair, (this.#refusals.get(pair) ?? 0) + 1);
  }
}
