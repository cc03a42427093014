import type { Logger } from '../../ports/ambient.ts';
import { openMessageSeal } from '../message-seal.ts';
import { requestDrain } from './drain.ts';
import { type Heartbeat, readHeartbeats } from './heartbeat.ts';
import { openRedis, parseFleet } from './redis.ts';
import { fleetKeys } from './wire.ts';

/** The workers at one Redis, as people look at them and drain them. */
export interface Fleet {
  /** Where it is, for people. */
  readonly place: string;
  /** Whether Redis can be asked now: commands to one that is away wait until it is back. */
  readonly isReachable: boolean;
  /** By name; `refused`: how many have another fleet key. */
  workers(): Promise<{ heartbeats: Heartbeat[]; refused: number }>;
  /** Asks it to take no more batches; null when no such worker is alive. */
  drain(worker: string): Promise<Heartbeat | null>;
  close(): void;
}

export async function openFleet(options: {
  url: string;
  fleetKeys?: readonly string[];
  logger: Logger;
}): Promise<Fleet> {
  const place = parseFleet(options.url);
  const redis = await openRedis(place, { logger: options.logger });
  const seal = openMessageSeal(options.fleetKeys ?? []);
  const keys = fleetKeys(place.prefix);
  const workers = async () => {
    const found = await readHeartbeats(redis.client, keys, seal);
    found.heartbeats.sort((one, other) => (one.worker < other.worker ? -1 : 1));
    return found;
  };
  return {
    place: place.shown,
    get isReachable() {
      return redis.client.status === 'ready';
    },
    workers,
    async drain(worker) {
      const { heartbeats } = await workers();
      const found = heartbeats.find((heartbeat) => heartbeat.worker === worker) ?? null;
      if (found) await requestDrain(redis.client, keys, seal, worker);
      return found;
    },
    close: () => redis.close(),
  };
}
