import { BoundedMap } from '../lru.ts';

/**
 * Hosts that a job of low priority gives back to an urgent one.
 *
 * A batch holds the parallel requests of its hosts until its last task is done, although most of its tasks have not begun.
 * Where an urgent job of the same owner has tasks for such a host and finds no room, the batches of lower priority are asked
 * to begin nothing more there: what they have not begun goes back to its place, and is lent again later.
 *
 * A host is asked for a few times in a second at most, since others may take it again before the urgent job does. So a stream
 * of urgent jobs does not keep others from working.
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

const ASKS_MAX = 4;
const ASKS_PER_MS = 1_000;
const HOSTS_KEPT = 10_000;

/** What was asked for a host within a second. */
interface Asked {
  since: number;
  count: number;
  /** Who was asked gives back what it has: asking again changes nothing. */
  batches: Set<number>;
}

export class HostRequests {
  readonly #asked = new BoundedMap<string, Asked>(HOSTS_KEPT);

  /** Which batches are to be asked for which of the hosts that a job wants. */
  ask<Holder extends HostHolder>(
    { owner, priority, hosts }: { owner: string; priority: number; hosts: readonly string[] },
    holders: Iterable<Holder>,
    now: number,
  ): AskedBatch<Holder>[] {
    const lower = [...holders].filter((holder) => holder.owner === owner && holder.priority < priority);
    if (lower.length === 0) return [];
    const wanted = new Map(hosts.map((host) => [host, this.#askedFor(host, now)]));
    const asked: AskedBatch<Holder>[] = [];
    for (const holder of lower)
      for (const { id, hosts: held } of holder.batches) {
        const own = held.filter((host) => {
          const before = wanted.get(host);
          return before !== undefined && before.count < ASKS_MAX && !before.batches.has(id);
        });
        if (own.length > 0) asked.push({ holder, batchId: id, hosts: own });
      }
    this.#note(asked, wanted);
    return asked;
  }

  #askedFor(host: string, now: number): Asked {
    const asked = this.#asked.get(host);
    return asked && now - asked.since < ASKS_PER_MS ? asked : { since: now, count: 0, batches: new Set() };
  }

  #note(asked: readonly { batchId: number; hosts: string[] }[], wanted: ReadonlyMap<string, Asked>): void {
    const counted = new Set<string>();
    for (const { batchId, hosts } of asked)
      for (const host of hosts) {
        const entry = wanted.get(host)!;
        entry.batches.add(batchId);
        if (!counted.has(host)) entry.count++;
        counted.add(host);
        this.#asked.set(host, entry);
      }
  }
}
