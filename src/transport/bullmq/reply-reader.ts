import type { Redis } from './bullmq-packages.ts';
import { type RawReply, readReply } from './wire.ts';

/** Shorter than a silent connection is given. */
const BLOCK_MS = 2_000;
/** Replies that are read at once, each of up to some hundred KB. */
const READ_MAX = 32;
const PAUSE_MS = 500;

/**
 * Reads a coordinator's replies, in order, until its connection is closed. What was read is removed with the next
 * reading and not before: after a break, or a Redis that began anew, it is read again, and the listener knows
 * what is old. So the ids of entries do not matter, which follow Redis' own clock.
 */
export async function readReplies(
  redis: Redis,
  key: string,
  listener: { onReply(reply: RawReply): void; onTrouble(error: unknown): void; isClosed(): boolean },
): Promise<void> {
  while (!listener.isClosed()) {
    try {
      const found = await readSome(redis, key);
      const ids: Buffer[] = [];
      for (const [id, fields] of found) {
        ids.push(id);
        try {
          listener.onReply(readReply(fields));
        } catch (error) {
          listener.onTrouble(error);
        }
      }
      // Not awaited: the connection keeps the order.
      if (ids.length > 0) redis.xdel(key, ...ids).catch(() => {});
    } catch (error) {
      if (listener.isClosed()) return;
      listener.onTrouble(error);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

type Entry = [id: Buffer, fields: Buffer[]];

async function readSome(redis: Redis, key: string): Promise<Entry[]> {
  const streams = await redis.xreadBuffer('COUNT', READ_MAX, 'BLOCK', BLOCK_MS, 'STREAMS', key, '0');
  return (streams?.[0]?.[1] ?? []) as Entry[];
}
