import { randomUUID } from 'node:crypto';
import { SeineError } from '../../core/errors.ts';
import type { MessageSeal } from '../../transport/message-seal.ts';
import type { Finding } from './check.ts';

/** Redis as a fleet uses it: a job goes into a queue and comes out again, and workers with the same key are counted. */
export async function checkRedis(
  url: string,
  fleetKeys: readonly string[],
  signal: AbortSignal,
): Promise<Finding> {
  const { openRedis, parseFleet } = await import('../../transport/bullmq/redis.ts');
  const { openFleetSeal } = await import('../../transport/bullmq/fleet-seal.ts');
  const place = parseFleet(url);
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const seal = openFleetSeal(place, fleetKeys, { warn });
  const redis = await openRedis(place, { logger: { info() {}, warn, error: warn } });
  signal.addEventListener('abort', () => redis.close());
  try {
    await passJob(redis.client, place.prefix);
    const { version, workers, browsers, refused } = await lookAround(redis.client, place.prefix, seal);
    if (refused > 0)
      warn(
        `workers with another fleet key, or none: ${refused}; set SEINE_FLEET_KEY to the same key everywhere`,
      );
    if (workers === 0) warn('no live workers: start some with `seine worker`');
    return {
      detail: `Redis ${version} at ${place.shown} works; live workers: ${workers}, ${browsers} with a browser; messages are ${seal.isSigned ? 'signed and encrypted' : 'not signed'}`,
      ...(warnings.length > 0 ? { warning: warnings.join('; ') } : {}),
    };
  } finally {
    redis.close();
  }
}

type Client = Awaited<ReturnType<typeof import('../../transport/bullmq/redis.ts').openRedis>>['client'];

async function passJob(connection: Client, prefix: string): Promise<void> {
  const { Queue } = await import('../../transport/bullmq/bullmq-packages.ts');
  // Of its own: two doctors may ask at once. The version was looked at when the connection was made.
  const queue = new Queue(`seine-doctor-${randomUUID()}`, { connection, prefix, skipVersionCheck: true });
  queue.on('error', () => {});
  try {
    const { id } = await queue.add('probe', { from: 'doctor' });
    const found = id === undefined ? undefined : await queue.getJob(id);
    if (!found)
      throw new SeineError('a job written to Redis was not found there', { hint: 'check the Redis log' });
    await queue.obliterate({ force: true });
  } finally {
    await queue.close();
  }
}

async function lookAround(
  client: Client,
  prefix: string,
  seal: MessageSeal,
): Promise<{ version: string; workers: number; browsers: number; refused: number }> {
  const { readHeartbeats } = await import('../../transport/bullmq/heartbeat.ts');
  const { fleetKeys } = await import('../../transport/bullmq/wire.ts');
  const { heartbeats, refused } = await readHeartbeats(client, fleetKeys(prefix), seal);
  const version = /^(?:redis|valkey)_version:(\S+)/m.exec(await client.info('server'))?.[1] ?? '';
  return {
    version,
    workers: heartbeats.length,
    browsers: heartbeats.filter(({ kind }) => kind === 'browser').length,
    refused,
  };
}
