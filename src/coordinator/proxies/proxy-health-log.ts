import { LIMITS } from '../../core/limits.ts';
import { LruMap } from '../../core/lru.ts';
import {
  type Health,
  isOnProbation,
  newHealth,
  noteBad,
  noteGood,
  type ProxyVerdict,
  patienceFor,
  scoreOf,
} from '../../core/proxies/proxy-health.ts';
import type { ProxyRow } from '../../ports/store/proxy-store.ts';

/** Uncertain failures at this many hosts in a row are the proxy's own. */
const HOSTS_IN_DOUBT = 3;

/** How each proxy has fared, in general and at each host. A dead proxy is one thing, a host that refuses it another. */
export class ProxyHealthLog {
  readonly #proxies = new Map<string, Health>();
  readonly #pairs = new LruMap<Health>(LIMITS.proxyHostsMax);
  readonly #hosts = new LruMap<Health>(LIMITS.proxyHostsMax);
  /** Hosts of failures that may be the proxy's, since its last success. */
  readonly #doubts = new Map<string, Set<string>>();
  readonly #changed = new Set<string>();

  /** What other runs and coordinators have learned. */
  learn(rows: readonly ProxyRow[]): void {
    for (const { proxy, host, health } of rows) {
      const known = host === null ? this.#proxies.get(proxy) : this.#pairs.get(pairOf(proxy, host));
      if (known && known.at >= health.at) continue;
      if (host === null) this.#proxies.set(proxy, { ...health });
      else this.#pairs.set(pairOf(proxy, host), { ...health });
    }
  }

  /** `host` is null where only the proxy itself is meant. */
  note(id: string, host: string | null, verdict: ProxyVerdict, now: number, restMs: number): void {
    const general = this.#healthOf(id, now);
    if (verdict === 'dead') {
      // One that has worked may be unlucky once; one that never did has no such credit.
      noteBad(general, now, general.ok >= 1 ? 1 : 0, restMs);
      return;
    }
    if (host !== null) this.#noteHere(id, host, verdict, now, restMs);
    if (verdict !== 'unsure') {
      this.#doubts.delete(id);
      noteGood(general, now);
      return;
    }
    const doubts = this.#doubts.get(id) ?? new Set();
    if (host !== null) doubts.add(host);
    this.#doubts.set(id, doubts);
    if (doubts.size >= HOSTS_IN_DOUBT) {
      doubts.clear();
      noteBad(general, now, 0, restMs);
    }
  }

  isResting(id: string, now: number): boolean {
    return (this.#proxies.get(id)?.until ?? 0) > now;
  }

  /** It has never worked at this host, or not lately. */
  isDoubtful(id: string, host: string): boolean {
    const here = this.#pairs.get(pairOf(id, host));
    return here !== undefined && (here.ok < 1 || here.inRow > 1);
  }

  /** Until when it rests: by itself, or for this host. Not above zero when it may be used. */
  restsUntil(id: string, host: string): { general: number; here: number } {
    return {
      general: this.#proxies.get(id)?.until ?? 0,
      here: this.#pairs.get(pairOf(id, host))?.until ?? 0,
    };
  }

  /** It rested, and has not worked since: it gets one request at a time. */
  isOnProbation(id: string, host: string): boolean {
    return isOnProbation(this.#proxies.get(id)) || isOnProbation(this.#pairs.get(pairOf(id, host)));
  }

  /** Rests at a host without a success since: tells one lasting connection from the next. */
  restsAt(id: string, host: string): number {
    return this.#pairs.get(pairOf(id, host))?.rests ?? 0;
  }

  /** How much it is to be preferred. Squared at the host: one that a site does not like is avoided there most of all. */
  weight(id: string, host: string, now: number): number {
    const here = scoreOf(this.#pairs.get(pairOf(id, host)), now);
    return scoreOf(this.#proxies.get(id), now) * here * here;
  }

  /** What changed since the last call. */
  takeChanges(): ProxyRow[] {
    const rows: ProxyRow[] = [];
    for (const key of this.#changed) {
      const [proxy, host = null] = key.split(' ') as [string, string?];
      const health = host === null ? this.#proxies.get(proxy) : this.#pairs.get(key);
      if (health) rows.push({ proxy, host, health: { ...health } });
    }
    this.#changed.clear();
    return rows;
  }

  #noteHere(id: string, host: string, verdict: ProxyVerdict, now: number, restMs: number): void {
    const pair = pairOf(id, host);
    this.#changed.add(pair);
    const here = this.#pairs.getOr(pair, () => newHealth(now));
    const all = this.#hosts.getOr(host, () => newHealth(now));
    if (verdict === 'good') {
      noteGood(here, now);
      noteGood(all, now);
      return;
    }
    // What the host refuses from everybody is not held against this proxy.
    const ok = Math.max(0, all.ok - here.ok);
    const bad = Math.max(0, all.bad - here.bad);
    noteBad(here, now, patienceFor(ok + bad < 1 ? 0 : bad / (ok + bad)), restMs);
    noteBad(all, now, Number.POSITIVE_INFINITY, 0);
  }

  #healthOf(id: string, now: number): Health {
    this.#changed.add(id);
    let health = this.#proxies.get(id);
    if (!health) {
      health = newHealth(now);
      this.#proxies.set(id, health);
    }
    return health;
  }
}

function pairOf(proxy: string, host: string): string {
  return `${proxy} ${host}`;
}
