import type { Redis } from 'ioredis';
import { WIRE_VERSION, WORKER_KINDS, type WorkerKind } from '../../core/batch/batch.ts';
import type { WorkerHeartbeat } from '../../ports/dispatcher.ts';
import { type FleetKeys, HEARTBEAT_MS, HEARTBEAT_TTL_MS } from './wire.ts';

/** What a worker says of itself every two seconds, under a key that ends with it. */
export interface Heartbeat extends WorkerHeartbeat {
  version: number;
  /** Another number in each sign: shows that it is a new one, whatever the clocks say. */
  beat: number;
  threads: number;
  slots: number;
  /** Batches that it has. */
  tickets: string[];
}

export async function writeHeartbeat(redis: Redis, keys: FleetKeys, sign: Heartbeat): Promise<void> {
  await Promise.all([
    redis.set(keys.worker(sign.worker), JSON.stringify(sign), 'PX', HEARTBEAT_TTL_MS),
    redis.sadd(keys.workers, sign.worker),
  ]);
}

export async function removeHeartbeat(redis: Redis, keys: FleetKeys, worker: string): Promise<void> {
  await Promise.all([redis.del(keys.worker(worker)), redis.srem(keys.workers, worker)]);
}

export async function readHeartbeats(redis: Redis, keys: FleetKeys): Promise<Heartbeat[]> {
  const names = await redis.smembers(keys.workers);
  if (names.length === 0) return [];
  const texts = await redis.mget(names.map((name) => keys.worker(name)));
  const gone = names.filter((_, index) => texts[index] == null);
  if (gone.length > 0) await redis.srem(keys.workers, ...gone);
  return texts.flatMap((text) => {
    const sign = text == null ? null : decodeSign(text);
    return sign ? [sign] : [];
  });
}

function decodeSign(text: string): Heartbeat | null {
  try {
    const sign = JSON.parse(text) as Partial<Heartbeat>;
    const counts = [sign.beat, sign.threads, sign.slots, sign.at, sign.cpu, sign.memoryBytes, sign.batches];
    if (!counts.every((count) => Number.isFinite(count))) return null;
    if (!WORKER_KINDS.includes(sign.kind as WorkerKind) || typeof sign.worker !== 'string') return null;
    return Array.isArray(sign.tickets) && Array.isArray(sign.hosts) ? (sign as Heartbeat) : null;
  } catch {
    return null;
  }
}

/** Three signs that did not come. */
export const DEAD_MS = 3 * HEARTBEAT_MS + 500;

interface Known {
  sign: Heartbeat;
  tickets: ReadonlySet<string>;
  /** When its last new sign was read, by our clock. */
  seenAt: number;
  present: boolean;
}

/** Who is alive, as far as the signs of life tell. Times are a monotonic clock's of this process. */
export class LiveWorkers {
  readonly #known = new Map<string, Known>();

  /** Takes what was just read. */
  note(signs: readonly Heartbeat[], now: number): void {
    for (const known of this.#known.values()) known.present = false;
    for (const sign of signs) {
      const known = this.#known.get(sign.worker);
      if (known?.sign.beat === sign.beat) known.present = true;
      else this.#known.set(sign.worker, { sign, tickets: new Set(sign.tickets), seenAt: now, present: true });
    }
    for (const [name, { seenAt }] of this.#known) if (now - seenAt > 10 * DEAD_MS) this.#known.delete(name);
  }

  /** After a time without Redis nobody could give signs, so nobody is dead yet. */
  forgive(now: number): void {
    for (const known of this.#known.values()) known.seenAt = now;
  }

  /** `metAt`: when it was heard of otherwise. */
  isDead(worker: string, metAt: number, now: number): boolean {
    return now - Math.max(metAt, this.#known.get(worker)?.seenAt ?? metAt) > DEAD_MS;
  }

  /** Those that can be given work, which are the ones that speak as we do. */
  live(now: number): Heartbeat[] {
    return this.#alive(now).filter(({ version }) => version === WIRE_VERSION);
  }

  serves(kind: WorkerKind, now: number): boolean {
    return this.live(now).some((sign) => kind === 'http' || sign.kind === 'browser');
  }

  /** Batches of a kind that those who take them have room for. */
  slotsFor(kind: WorkerKind, now: number): number {
    return this.live(now)
      .filter((sign) => kind === 'http' || sign.kind === 'browser')
      .reduce((sum, { slots }) => sum + slots, 0);
  }

  strangers(now: number): Heartbeat[] {
    return this.#alive(now).filter(({ version }) => version !== WIRE_VERSION);
  }

  beatOf(worker: string): number | null {
    return this.#known.get(worker)?.sign.beat ?? null;
  }

  has(worker: string, ticket: string): boolean {
    return this.#known.get(worker)?.tickets.has(ticket) ?? false;
  }

  holderOf(ticket: string): string | null {
    for (const [name, { tickets }] of this.#known) if (tickets.has(ticket)) return name;
    return null;
  }

  #alive(now: number): Heartbeat[] {
    return [...this.#known.values()]
      .filter(({ present, seenAt }) => present && now - seenAt <= DEAD_MS)
      .map(({ sign }) => sign);
  }
}
