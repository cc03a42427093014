import type { BatchProxy, Report } from '../../core/batch/batch.ts';
import { failureOfStatus } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';
import type { ListedProxy } from '../../core/proxies/proxy.ts';
import { type ProxyVerdict, verdictOf, verdictOfCode } from '../../core/proxies/proxy-health.ts';
import {
  type Asker,
  batchProxyOf,
  type ProxyPool,
  poolIn,
  preferenceOf,
  stayOf,
} from '../../core/proxies/proxy-pool.ts';
import type { ProxyRow } from '../../ports/store/proxy-store.ts';
import { ProxyHealthLog } from './proxy-health-log.ts';

/** Proxies among which each worker finds its own. */
const PROXIES_PER_WORKER_CHOICE = 16;

/** What a task may go through, the best first; or when there will be something; or that there will be nothing. */
export type Assignment =
  | { kind: 'proxies'; proxies: BatchProxy[]; perWorker: boolean; lasting: boolean }
  | { kind: 'none'; until: number; message: string }
  | { kind: 'never'; message: string };

/** A proxy on probation is tried again if no news of the last try came for this long; until then it is asked for often. */
const PROBE_MS = 60_000;
const PROBE_LOOK_MS = 1_000;
/** Requests that are given out at once are sent over this long: so far ahead the rate of a proxy is counted. */
const AHEAD_MS = 10_000;
/** Of larger pools so many are looked at for each task: the best of some is nearly the best of all. */
const SAMPLE = 24;

/** More failures of one report say nothing more. */
const FAULTS_NOTED_MAX = 3;

/** What one proxy does now. */
interface Use {
  probedAt: number;
  /** When its next request may be sent, for pools with a rate. */
  freeAt: number;
  restMs: number;
}

/** All proxies of a job: who may use which. */
export class ProxySelector {
  readonly #pools: Map<string, ProxyPool>;
  /** By pool and country that rows name; there are some hundred countries. */
  readonly #poolsIn = new Map<string, ProxyPool>();
  readonly #random: () => number;
  readonly #records = new ProxyHealthLog();
  readonly #uses = new Map<string, Use>();
  readonly #shortages = new Map<string, { until: number; message: string }>();

  constructor(pools: readonly ProxyPool[], random: () => number) {
    this.#pools = new Map(pools.map((pool) => [pool.name, pool]));
    this.#random = random;
    for (const { spec, proxies, all = proxies } of pools) {
      const use = { probedAt: Number.NEGATIVE_INFINITY, freeAt: 0, restMs: spec.cooldownSeconds * 1_000 };
      for (const { id } of all) this.#uses.set(id, { ...use });
    }
  }

  learn(rows: readonly ProxyRow[]): void {
    this.#records.learn(rows.filter(({ proxy }) => this.#uses.has(proxy)));
  }

  takeChanges(): ProxyRow[] {
    return this.#records.takeChanges();
  }

  assign(poolName: string, asker: Asker, now: number): Assignment {
    const pool = this.#poolFor(poolName, asker.country);
    const stay = stayOf(pool, asker, now);
    const lasting = stay !== null || pool.spec.perWorker;
    const usable = this.#usable(pool, asker.host, now, lasting);
    if (usable.length === 0) return this.#shortage(pool, asker.host, now);
    this.#shortages.delete(poolName);
    const chosen = this.#choose(pool, usable, asker.host, stay, now);
    this.#take(pool, chosen[0]!, asker.host, now);
    const proxies = chosen.map((proxy) => {
      const rests = this.#records.restsAt(proxy.id, asker.host);
      return batchProxyOf(pool, proxy, stay === null ? String(this.#random()) : `${stay} ${rests}`);
    });
    return { kind: 'proxies', proxies, perWorker: pool.spec.perWorker, lasting };
  }

  #poolFor(name: string, country: string | undefined): ProxyPool {
    const pool = this.#pools.get(name)!;
    if (country === undefined || country === pool.spec.country?.toUpperCase()) return pool;
    const key = `${name} ${country}`;
    const known = this.#poolsIn.get(key) ?? poolIn(pool, country);
    this.#poolsIn.set(key, known);
    return known;
  }

  /** Takes in what a report tells. Comes before its outcomes are judged: see `isDown`. */
  note(
    report: Pick<Report, 'proxyFaults' | 'outcomes' | 'robots'>,
    hostOf: (taskId: number) => string | null,
    now: number,
  ): void {
    for (const { id, count } of report.proxyFaults ?? []) {
      for (let times = Math.min(count, FAULTS_NOTED_MAX); times > 0; times--)
        this.#note(id, null, 'dead', now);
    }
    for (const outcome of report.outcomes) {
      const id = 'trace' in outcome ? outcome.trace?.via?.proxy : null;
      if (id) this.#note(id, hostOf(outcome.taskId), verdictOf(outcome), now);
    }
    for (const { origin, ...outcome } of report.robots) {
      const trace = 'trace' in outcome ? outcome.trace : null;
      if (!trace?.via?.proxy) continue;
      // A refusal is an answer to the question for robots.txt, but no good one for the proxy.
      const answered =
        trace.httpStatus === null ? verdictOf(outcome) : verdictOfCode(failureOfStatus(trace.httpStatus));
      this.#note(trace.via.proxy, origin.slice(origin.indexOf('//') + 2), answered, now);
    }
  }

  /** A task that met a proxy which is down was not tried at all; one that fails where others get through was. */
  isDown(id: string, now: number): boolean {
    return this.#records.isResting(id, now);
  }

  /** Whether a refusal by the host may be meant for this proxy rather than for the page, and there are others. */
  isDoubtful(pool: string, id: string, host: string): boolean {
    return (this.#pools.get(pool)?.proxies.length ?? 0) > 1 && this.#records.isDoubtful(id, host);
  }

  /** What people must know while work waits for proxies. */
  shortage(now: number): string | null {
    for (const { until, message } of this.#shortages.values()) if (until > now) return message;
    return null;
  }

  #note(id: string, host: string | null, verdict: ProxyVerdict | null, now: number): void {
    const use = this.#uses.get(id);
    if (!use || !verdict) return;
    use.probedAt = Number.NEGATIVE_INFINITY;
    this.#records.note(id, host, verdict, now, use.restMs);
  }

  /** Those that may be used now: of large pools a sample, where any will do. */
  #usable(pool: ProxyPool, host: string, now: number, all: boolean): ListedProxy[] {
    const { proxies } = pool;
    const isUsable = (proxy: ListedProxy) => this.#freeAt(proxy, host, now) <= now;
    if (all || proxies.length <= SAMPLE) return proxies.filter(isUsable);
    const start = Math.floor(this.#random() * proxies.length);
    const found: ListedProxy[] = [];
    for (let step = 0; step < proxies.length && found.length < SAMPLE; step++) {
      const proxy = proxies[(start + step) % proxies.length]!;
      if (isUsable(proxy)) found.push(proxy);
    }
    return found;
  }

  #freeAt({ id }: ListedProxy, host: string, now: number): number {
    const { general, here } = this.#records.restsUntil(id, host);
    const use = this.#uses.get(id)!;
    const free = Math.max(general, here, use.freeAt - AHEAD_MS);
    if (free > now || now >= use.probedAt + PROBE_MS) return free;
    return this.#records.isOnProbation(id, host) ? now + PROBE_LOOK_MS : free;
  }

  #choose(
    pool: ProxyPool,
    usable: ListedProxy[],
    host: string,
    stay: string | null,
    now: number,
  ): ListedProxy[] {
    if (pool.spec.perWorker) return preferenceOf(pool.name, usable).slice(0, PROXIES_PER_WORKER_CHOICE);
    // Who stays with a proxy gets no other in its place: to the site that would be another visitor.
    if (stay !== null) return preferenceOf(stay, usable).slice(0, 1);
    const left = usable.map((proxy) => ({ proxy, weight: this.#records.weight(proxy.id, host, now) }));
    const chosen: ListedProxy[] = [];
    while (chosen.length < LIMITS.proxiesPerTask && left.length > 0) {
      let point = this.#random() * left.reduce((sum, { weight }) => sum + weight, 0);
      const index = left.findIndex(({ weight }) => {
        point -= weight;
        return point < 0;
      });
      chosen.push(left.splice(index < 0 ? left.length - 1 : index, 1)[0]!.proxy);
    }
    return chosen;
  }

  /** Whichever of several a worker takes in the end, the first stands for them. */
  #take(pool: ProxyPool, { id }: ListedProxy, host: string, now: number): void {
    const use = this.#uses.get(id)!;
    if (this.#records.isOnProbation(id, host)) use.probedAt = now;
    const { ratePerProxy } = pool.spec;
    if (ratePerProxy !== undefined) use.freeAt = Math.max(use.freeAt, now) + 1_000 / ratePerProxy;
  }

  #shortage(pool: ProxyPool, host: string, now: number): Assignment {
    // The list is read when a run begins: no other will come.
    if (pool.proxies.length === 0)
      return { kind: 'never', message: `pool '${pool.name}' has no proxy in ${pool.spec.country}` };
    let until = now + LIMITS.proxyRestMsMax;
    let failed = 0;
    let refused = 0;
    for (const proxy of pool.proxies) {
      until = Math.min(until, this.#freeAt(proxy, host, now));
      const rests = this.#records.restsUntil(proxy.id, host);
      if (rests.general > now) failed++;
      else if (rests.here > now) refused++;
    }
    const why = [
      `${pool.proxies.length} in total`,
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...(refused > 0 ? [`${refused} refused by ${host}`] : []),
    ];
    const at = new Date(until).toISOString().slice(0, 19);
    const message = `no proxy of pool '${pool.name}' is usable until ${at}Z (${why.join(', ')})`;
    this.#shortages.set(pool.name, { until, message });
    return { kind: 'none', until, message };
  }
}
