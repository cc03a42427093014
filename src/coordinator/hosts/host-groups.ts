import { isIP } from 'node:net';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { LruMap } from '../../core/lru.ts';
import {
  addressGroup,
  compileSharing,
  compileSites,
  type HostGrouper,
  hostnameOf,
} from '../../core/politeness/host-groups.ts';
import type { Resolver } from '../../ports/resolver.ts';
import type { HostStore, Job } from '../../ports/store.ts';

/** Names that take longer are counted by themselves: reports and sources must not wait for somebody's name server. */
export const LOOKUP_MS = 5_000;
const HOSTS_REMEMBERED_MAX = 50_000;

interface GroupStore {
  readonly hosts: Pick<HostStore, 'groupsOf' | 'noteGroups'>;
}

/**
 * What rates are counted by. An address is looked up once for each host of a job, when it is first met, and noted in
 * the store: from then on the host is counted there, in every coordinator and after every restart. Would it change its
 * group, some of its tasks would wait in the one and some in the other, and both would be asked at the full rate.
 */
export class HostGroups {
  readonly #options: {
    store: GroupStore;
    job: Pick<Job, 'id' | 'spec'>;
    resolver: Resolver | null;
  };
  readonly #byName: HostGrouper | null;
  readonly #share: (host: string, shared: string) => string;
  readonly #known = new LruMap<string>(HOSTS_REMEMBERED_MAX);
  readonly #asked = new Map<string, Promise<string>>();

  constructor(options: {
    store: GroupStore;
    job: Pick<Job, 'id' | 'spec'>;
    resolver?: Resolver | null;
  }) {
    this.#options = { ...options, resolver: options.resolver ?? null };
    this.#byName = groupsByName(options.job.spec);
    this.#share = compileSharing(options.job.spec);
  }

  /** Whether several hosts may have one group. */
  get areShared(): boolean {
    return this.#options.job.spec.politeness.groupBy !== 'host';
  }

  /** Knows the groups of these hosts; the list is only looked at where names alone do not tell. */
  async of(hosts: () => Iterable<string>): Promise<HostGrouper> {
    if (this.#byName) return this.#byName;
    const groups = new Map<string, string>();
    const unknown = new Set<string>();
    for (const host of hosts()) {
      const group = this.#known.get(host);
      if (group === undefined) unknown.add(host);
      else groups.set(host, group);
    }
    for (const [host, group] of await this.#learn([...unknown])) groups.set(host, group);
    return (host) => groups.get(host) ?? host;
  }

  async #learn(hosts: string[]): Promise<Map<string, string>> {
    if (hosts.length === 0) return new Map();
    const { store, job } = this.#options;
    const noted = await store.hosts.groupsOf(job.id, hosts);
    const fresh = hosts.filter((host) => !noted.has(host));
    if (fresh.length > 0) {
      const found = await this.#lookUp(fresh);
      for (const [host, group] of await store.hosts.noteGroups(job.id, found)) noted.set(host, group);
    }
    for (const [host, group] of noted) this.#known.set(host, group);
    return noted;
  }

  async #lookUp(hosts: string[]): Promise<Map<string, string>> {
    const groups = new Map(hosts.map((host) => [host, host]));
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, LOOKUP_MS);
    const all = hosts.map(async (host) => groups.set(host, await this.#groupOf(host)));
    await Promise.race([Promise.all(all), over]);
    clearTimeout(timer);
    // What comes later must not change what is noted now.
    return new Map(groups);
  }

  async #groupOf(host: string): Promise<string> {
    const hostname = hostnameOf(host);
    if (isIP(hostname) !== 0) return this.#share(host, addressGroup([hostname]) ?? host);
    let asked = this.#asked.get(host);
    if (!asked) {
      const { resolver } = this.#options;
      asked = (resolver?.addressesOf(hostname) ?? Promise.resolve([]))
        .then((addresses) => this.#share(host, addressGroup(addresses) ?? host))
        .finally(() => this.#asked.delete(host));
      this.#asked.set(host, asked);
    }
    return asked;
  }
}

/** Null where names have to be looked up. */
function groupsByName(spec: JobSpec): HostGrouper | null {
  const { groupBy } = spec.politeness;
  if (groupBy === 'address') return null;
  return groupBy === 'site' ? compileSites(spec) : (host) => host;
}
