import { WIRE_VERSION, WORKER_KINDS, type WorkerKind } from '../../core/batch/batch.ts';
import type { WorkerHeartbeat } from '../../ports/dispatcher.ts';
import type { MessageSeal } from '../message-seal.ts';
import type { Redis } from './bullmq-packages.ts';
import { type FleetKeys, HEARTBEAT_MS, HEARTBEAT_TTL_MS } from './wire.ts';

/** What a worker says of itself every two seconds, under a key that ends with it. */
export interface Heartbeat extends WorkerHeartbeat {
  version: number;
  kind: WorkerKind;
  /** Another number in each heartbeat: shows that it is a new one, whatever the clocks say. */
  beat: number;
  /** Ids of the sent batches that it has. */
  sentIds: string[];
}

export async function writeHeartbeat(
  redis: Redis,
  keys: FleetKeys,
  seal: MessageSeal,
  heartbeat: Heartbeat,
): Promise<void> {
  const body = seal.seal(contextOf(keys, heartbeat.worker), Buffer.from(JSON.stringify(heartbeat)));
  await Promise.all([
    redis.set(keys.worker(heartbeat.worker), body, 'PX', HEARTBEAT_TTL_MS),
    redis.sadd(keys.workers, heartbeat.worker),
  ]);
}

function contextOf({ prefix }: FleetKeys, worker: string) {
  return ['heartbeat', prefix, worker] as const;
}

export async function removeHeartbeat(redis: Redis, keys: FleetKeys, worker: string): Promise<void> {
  await Promise.all([redis.del(keys.worker(worker)), redis.srem(keys.workers, worker)]);
}

/** `refused`: how many are not signed with our key. */
export async function readHeartbeats(
  redis: Redis,
  keys: FleetKeys,
  seal: MessageSeal,
): Promise<{ heartbeats: Heartbeat[]; refused: number }> {
  const names = await redis.smembers(keys.workers);
  if (names.length === 0) return { heartbeats: [], refused: 0 };
  const bodies = await redis.mgetBuffer(names.map((name) => keys.worker(name)));
  const gone = names.filter((_, index) => bodies[index] == null);
  if (gone.length > 0) await redis.srem(keys.workers, ...gone);
  const heartbeats: Heartbeat[] = [];
  let refused = 0;
  for (const [index, body] of bodies.entries()) {
    if (body == null) continue;
    try {
      const heartbeat = decodeHeartbeat(seal.open(contextOf(keys, names[index]!), body).toString());
      if (heartbeat?.worker === names[index]) heartbeats.push(heartbeat!);
    } catch {
      refused++;
    }
  }
  return { heartbeats, refused };
}

function decodeHeartbeat(text: string): Heartbeat | null {
  try {
    // Workers of an older release say less of themselves.
    const older = { software: '', isDraining: false, batchesDone: 0, tasksDone: 0 };
    const heartbeat: Partial<Heartbeat> = { ...older, ...(JSON.parse(text) as object) };
    const counts = [
      heartbeat.beat,
      heartbeat.threads,
      heartbeat.slots,
      heartbeat.at,
      heartbeat.cpu,
      heartbeat.memoryBytes,
      heartbeat.batches,
      heartbeat.batchesDone,
      heartbeat.tasksDone,
    ];
    if (!counts.every((count) => Number.isFinite(count))) return null;
    if (!WORKER_KINDS.includes(heartbeat.kind as WorkerKind) || typeof heartbeat.worker !== 'string')
      return null;
    if (typeof heartbeat.software !== 'string' || typeof heartbeat.isDraining !== 'boolean') return null;
    return isTexts(heartbeat.sentIds) && isTexts(heartbeat.hosts) ? (heartbeat as Heartbeat) : null;
  } catch {
    return null;
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** Three heartbeats that did not come. */
export const DEAD_MS = 3 * HEARTBEAT_MS + 500;

interface Known {
  heartbeat: Heartbeat;
  sentIds: ReadonlySet<string>;
  /** When its last new heartbeat was read, by our clock. */
  seenAt: number;
  present: boolean;
}

/** Which workers are alive, as far as their heartbeats tell. Times are a monotonic clock's of this process. */
export class LiveWorkers {
  readonly #known = new Map<string, Known>();

  /** Takes what was just read. */
  note(heartbeats: readonly Heartbeat[], now: number): void {
    for (const known of this.#known.values()) known.present = false;
    for (const heartbeat of heartbeats) {
      const known = this.#known.get(heartbeat.worker);
      // One that was read before, or that somebody has kept.
      if (known && heartbeat.beat <= known.heartbeat.beat) known.present = true;
      else
        this.#known.set(heartbeat.worker, {
          heartbeat,
          sentIds: new Set(heartbeat.sentIds),
          seenAt: now,
          present: true,
        });
    }
    for (const [name, { seenAt }] of this.#known) if (now - seenAt > 10 * DEAD_MS) this.#known.delete(name);
  }

  /** While Redis was away no heartbeat could be written, so no worker counts as dead yet. */
  forgive(now: number): void {
    for (const known of this.#known.values()) known.seenAt = now;
  }

  /** `metAt`: when it was heard of otherwise. */
  isDead(worker: string, metAt: number, now: number): boolean {
    return now - Math.max(metAt, this.#known.get(worker)?.seenAt ?? metAt) > DEAD_MS;
  }

  /** Those that can be given work: the ones with our version of the wire format. */
  live(now: number): Heartbeat[] {
    return this.#alive(now).filter(({ version }) => version === WIRE_VERSION);
  }

  serves(kind: WorkerKind, now: number): boolean {
    return this.live(now).some((heartbeat) => kind === 'http' || heartbeat.kind === 'browser');
  }

  /** How many more batches of a kind the live workers have room for. */
  slotsFor(kind: WorkerKind, now: number): number {
    return this.live(now)
      .filter((heartbeat) => kind === 'http' || heartbeat.kind === 'browser')
      .reduce((sum, { slots }) => sum + slots, 0);
  }

  strangers(now: number): Heartbeat[] {
    return this.#alive(now).filter(({ version }) => version !== WIRE_VERSION);
  }

  beatOf(worker: string): number | null {
    return this.#known.get(worker)?.heartbeat.beat ?? null;
  }

  has(worker: string, sentId: string): boolean {
    return this.#known.get(worker)?.sentIds.has(sentId) ?? false;
  }

  holderOf(sentId: string): string | null {
    for (const [name, { sentIds }] of this.#known) if (sentIds.has(sentId)) return name;
    return null;
  }

  #alive(now: number): Heartbeat[] {
    return [...this.#known.values()]
      .filter(({ present, seenAt }) => present && now - seenAt <= DEAD_MS)
      .map(({ heartbeat }) => heartbeat);
  }
}
