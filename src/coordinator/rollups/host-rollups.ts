import {
  addRollup,
  addSettled,
  emptyRollup,
  OTHER_HOSTS,
  type Rollup,
  type RollupRow,
  type SettledTask,
  stretchOf,
} from '../../core/rollups/rollup.ts';

/** Hosts that have rows of their own at a time. */
const BUSIEST_MAX = 30;
/** Others become the busiest: so many names have rows within an hour, which bounds the rows of the store. */
const NAMES_PER_HOUR_MAX = 50;
/** Hosts whose requests are counted to find the busiest; about 100 bytes each. */
const HOSTS_TRACKED_MAX = 2_000;
const HOUR_MS = 3_600_000;
const SLOT_SECONDS = 10;

/**
 * Gathers what happens at hosts, so that few rows are written and not one for each report. A crash loses what was
 * gathered since they were last taken: a few seconds of what is known by host, and nothing of what is known of the job.
 */
export class HostRollups {
  /** By host, for each stretch of ten seconds. */
  readonly #slots = new Map<number, Map<string, Rollup>>();
  /** Requests of this hour; of hosts that were seldom asked they are forgotten when there are too many. */
  readonly #requests = new Map<string, number>();
  #named = new Set<string>();
  #hour = 0;

  add(host: string, tasks: Iterable<SettledTask>, requests: number, now: number): void {
    const rollup = this.#rollupOf(host, stretchOf(now, SLOT_SECONDS));
    for (const task of tasks) addSettled(rollup, task);
    rollup.requests += requests;
    this.#requests.set(host, (this.#requests.get(host) ?? 0) + requests);
    if (this.#requests.size > HOSTS_TRACKED_MAX) this.#forgetSeldom();
  }

  /** What was gathered, the busiest hosts by name. */
  take(): RollupRow[] {
    const rows = [...this.#slots].flatMap(([at, hosts]) => this.#rowsOf(at, hosts));
    this.#slots.clear();
    return rows;
  }

  #rowsOf(at: number, hosts: ReadonlyMap<string, Rollup>): RollupRow[] {
    this.#nameBusiest(at, [...hosts.keys()]);
    const others = emptyRollup();
    const rows: RollupRow[] = [];
    for (const [host, rollup] of hosts) {
      if (this.#named.has(host)) rows.push({ host, at, rollup });
      else addRollup(others, rollup);
    }
    if (rows.length < hosts.size) rows.push({ host: OTHER_HOSTS, at, rollup: others });
    return rows;
  }

  #nameBusiest(at: number, hosts: readonly string[]): void {
    const hour = Math.floor(at / HOUR_MS);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#named = new Set();
    }
    if (this.#named.size >= NAMES_PER_HOUR_MAX || hosts.every((host) => this.#named.has(host))) return;
    for (const [host] of this.#ranked().slice(0, BUSIEST_MAX))
      if (this.#named.size < NAMES_PER_HOUR_MAX) this.#named.add(host);
  }

  #ranked(): [host: string, requests: number][] {
    return [...this.#requests].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  }

  /** Half of them at a time, and half of the weight of the others: hosts of long ago make room for those of now. */
  #forgetSeldom(): void {
    const kept = this.#ranked().slice(0, HOSTS_TRACKED_MAX / 2);
    this.#requests.clear();
    for (const [host, requests] of kept) this.#requests.set(host, requests / 2);
  }

  #rollupOf(host: string, at: number): Rollup {
    const hosts = this.#slots.get(at) ?? new Map<string, Rollup>();
    this.#slots.set(at, hosts);
    const known = hosts.get(host) ?? emptyRollup();
    hosts.set(host, known);
    return known;
  }
}
