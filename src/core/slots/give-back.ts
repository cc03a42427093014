import { BoundedMap } from '../lru.ts';

/**
 * Hosts that a job of low priority gives back to an urgent one.
 *
 * A batch holds the parallel requests of its hosts until its last task is done, although most of its tasks have not begun.
 * Where an urgent job of the same owner has tasks for such a host and finds no room, the batches of lower priority are asked
 * to begin nothing more there: what they have not begun goes back to its place, and is lent again later.
 *
 * A host is asked for once a second at most. So a stream of urgent jobs does not keep others from working.
 */

/** A job, and the batches that it has out. */
interface HostHolder {
  owner: string;
  priority: number;
  /** With the hosts that could be given back. */
  batches: Iterable<{ id: number; hosts: readonly string[] }>;
}

interface AskedBatch<Holder extends HostHolder> {
  holder: Holder;
  batchId: number;
  hosts: string[];
}

const ASKED_AGAIN_MS = 1_000;
const HOSTS_KEPT = 10_000;

export class HostRequests {
  /** When batches were last asked for a host. */
  readonly #askedAt = new BoundedMap<string, number>(HOSTS_KEPT);

  /** Which batches are to be asked for which of the hosts that a job wants. */
  ask<Holder extends HostHolder>(
    { owner, priority, hosts }: { owner: string; priority: number; hosts: readonly string[] },
    holders: Iterable<Holder>,
    now: number,
  ): AskedBatch<Holder>[] {
    const lower = [...holders].filter((holder) => holder.owner === owner && holder.priority < priority);
    if (lower.length === 0) return [];
    const wanted = new Set(hosts.filter((host) => this.#isDue(host, now)));
    const asked: AskedBatch<Holder>[] = [];
    for (const holder of lower)
      for (const { id, hosts: held } of holder.batches) {
        const own = held.filter((host) => wanted.has(host));
        if (own.length > 0) asked.push({ holder, batchId: id, hosts: own });
      }
    for (const each of asked) for (const host of each.hosts) this.#askedAt.set(host, now);
    return asked;
  }

  #isDue(host: string, now: number): boolean {
    const askedAt = this.#askedAt.get(host);
    return askedAt === undefined || now - askedAt >= ASKED_AGAIN_MS;
  }
}
