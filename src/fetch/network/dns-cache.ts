import dns, { type LookupAddress } from 'node:dns';
import { BoundedMap } from '../../core/lru.ts';
import type { Clock } from '../../ports/ambient.ts';

/** Names that are remembered; the oldest is forgotten first. */
const DNS_ENTRIES_MAX = 10_000;
/** Short, as the system does not say how long an address is valid. */
export const DNS_TTL_MS = 60_000;

export type Lookup = (
  hostname: string,
  options: { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

interface Entry {
  addresses: LookupAddress[];
  expiresAt: number;
}

/** Answers are kept unfiltered: whether an address may be dialled is decided at each connection. */
export class DnsCache {
  #clock: Clock;
  #lookup: Lookup;
  #entries = new BoundedMap<string, Entry>(DNS_ENTRIES_MAX);
  #waiting = new Map<string, Answer[]>();

  constructor(clock: Clock, lookup: Lookup = dns.lookup) {
    this.#clock = clock;
    this.#lookup = lookup;
  }

  /** Answers at once from the cache; callers of the same name share one look-up. Failures are not kept. */
  resolve(hostname: string, answer: Answer): void {
    const entry = this.#entries.get(hostname);
    if (entry !== undefined && entry.expiresAt > this.#clock.now()) {
      answer(null, entry.addresses);
      return;
    }
    const waiting = this.#waiting.get(hostname);
    if (waiting !== undefined) {
      waiting.push(answer);
      return;
    }
    this.#waiting.set(hostname, [answer]);
    this.#lookup(hostname, { all: true }, (error, addresses) => {
      if (error === null) this.#keep(hostname, addresses);
      const answers = this.#waiting.get(hostname) ?? [];
      this.#waiting.delete(hostname);
      for (const each of answers) each(error, addresses);
    });
  }

  #keep(hostname: string, addresses: LookupAddress[]): void {
    this.#entries.set(hostname, { addresses, expiresAt: this.#clock.now() + DNS_TTL_MS });
  }
}
