import type { MessageSeal, SealContext } from '../message-seal.ts';
import type { Redis } from './bullmq-packages.ts';
import type { FleetKeys } from './wire.ts';

/**
 * A worker that is drained takes no more batches, finishes those that it has, and ends. It is asked to by a key in Redis,
 * which it looks for with each heartbeat, so that a request survives a broken connection. Whoever asks needs the fleet key.
 */

/** A worker that is alive has read it long before. Its name is never used again. */
const REQUEST_TTL_MS = 600_000;

export async function requestDrain(
  redis: Redis,
  keys: FleetKeys,
  seal: MessageSeal,
  worker: string,
): Promise<void> {
  const body = seal.seal(contextOf(keys, worker), Buffer.from(worker));
  await redis.set(keys.drain(worker), body, 'PX', REQUEST_TTL_MS);
}

/** Throws for a request that was not made with the fleet key. */
export async function isDrainRequested(
  redis: Redis,
  keys: FleetKeys,
  seal: MessageSeal,
  worker: string,
): Promise<boolean> {
  const body = await redis.getBuffer(keys.drain(worker));
  return body !== null && seal.open(contextOf(keys, worker), body).toString() === worker;
}

function contextOf({ prefix }: FleetKeys, worker: string): SealContext {
  return ['drain', prefix, worker];
}
