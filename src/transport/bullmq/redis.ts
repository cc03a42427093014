import { messageOf, SeineError, UNREACHABLE_CODES } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import { Redis, type RedisOptions } from './bullmq-packages.ts';

/** Where a fleet meets: a Redis, and the beginning of all its keys there. */
export interface FleetPlace {
  url: string;
  prefix: string;
  /** For people: without user and password. */
  shown: string;
}

const PREFIX_MAX = 64;

/** `redis://user:password@host:port/database?prefix=name`. BullMQ's own prefix is the default, where boards look. */
export function parseFleet(text: string): FleetPlace {
  const url = new URL(text);
  const prefix = url.searchParams.get('prefix') ?? 'bull';
  url.searchParams.delete('prefix');
  if (prefix.length > PREFIX_MAX || !/^[\w.-]+$/.test(prefix))
    throw new SeineError(`invalid prefix '${prefix.slice(0, PREFIX_MAX)}'`, {
      hint: 'use letters, digits, dots, hyphens and underscores: bullmq://host:6379?prefix=shop',
    });
  if (!/^\/?\d{0,5}$/.test(url.pathname))
    throw new SeineError(`a Redis database must be a number, got '${url.pathname.slice(1, PREFIX_MAX)}'`, {
      hint: 'use bullmq://host:6379/0, or ?prefix=name to separate two fleets',
    });
  const shown = `${url.hostname}:${url.port || '6379'}`;
  return { url: url.href, prefix, shown };
}

const RETRY_MS_MAX = 2_000;
/** A connection that is made again within this is not worth a line. */
const AWAY_MS = 300;
/** Longer than any blocking command waits: a connection that is silent for so long is dead. */
const SILENT_MS_MAX = 12_000;
/** Streams, GET and DEL in scripts, and what BullMQ itself asks for. */
const VERSION_MIN = [6, 2];

const OPTIONS: RedisOptions = {
  // What waits for Redis waits as long as it takes: leases decide what is too late.
  maxRetriesPerRequest: null,
  retryStrategy: (times) => Math.min(RETRY_MS_MAX, times * 100),
  connectTimeout: 5_000,
  socketTimeout: SILENT_MS_MAX,
  protocol: 2,
  lazyConnect: true,
};

export interface FleetRedis {
  /** For how long it has not answered; null while it does. */
  awayMs(): number | null;
  client: Redis;
  /** Another connection to the same place, for commands that block. */
  another(): Redis;
  close(): void;
}

/** The first connection must work; a later one that breaks is made again, and the log says so. */
export async function openRedis(
  place: FleetPlace,
  options: { logger: Logger; onReady?(): void },
): Promise<FleetRedis> {
  const { logger } = options;
  const client = new Redis(place.url, OPTIONS);
  const others: Redis[] = [];
  let last: unknown = null;
  let isAway = false;
  let awayAt = 0;
  let isTold = false;
  client.on('error', (error) => {
    last = error;
  });
  try {
    await client.connect();
    await checkServer(client, place, logger);
  } catch (error) {
    client.disconnect();
    throw explainRedis(last ?? error, place);
  }
  client.on('close', () => {
    if (isAway || client.status === 'end') return;
    isAway = true;
    awayAt = performance.now();
    last = null;
    // What happened is known a moment later, when the connection could not be made again.
    const timer = setTimeout(() => {
      if (!isAway || client.status === 'end') return;
      isTold = true;
      logger.warn(awaySentence(place, last));
    }, AWAY_MS);
    timer.unref();
  });
  client.on('ready', () => {
    if (isTold) logger.warn(`Redis at ${place.shown} is available again`);
    isAway = false;
    isTold = false;
    options.onReady?.();
  });
  return {
    client,
    awayMs: () => (isAway ? performance.now() - awayAt : null),
    another() {
      const other = client.duplicate({ lazyConnect: false });
      // Whatever is wrong, the first connection says it.
      other.on('error', () => {});
      others.push(other);
      return other;
    },
    close() {
      for (const each of [client, ...others]) each.disconnect();
    },
  };
}

function awaySentence(place: FleetPlace, error: unknown): string {
  const why = error === null ? '' : `: ${sentenceOf(error, place)[0]}`;
  return `lost the connection to Redis at ${place.shown}, reconnecting${why}`;
}

async function checkServer(client: Redis, place: FleetPlace, logger: Logger): Promise<void> {
  const info = await client.info();
  const version = /^(?:redis|valkey)_version:(\d+)\.(\d+)/m.exec(info);
  const [major, minor] = [Number(version?.[1] ?? 99), Number(version?.[2] ?? 0)];
  if (major < VERSION_MIN[0]! || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]!))
    throw new SeineError(`Redis at ${place.shown} is version ${major}.${minor}, which is too old`, {
      hint: `install version ${VERSION_MIN.join('.')} or newer`,
    });
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
  if (policy && policy !== 'noeviction')
    logger.warn(
      `Redis at ${place.shown} evicts keys when its memory is full (${policy}), so batches would be sent again: set maxmemory-policy noeviction`,
    );
}

/** One sentence, and what to do. */
export function explainRedis(error: unknown, place: FleetPlace): unknown {
  if (error instanceof SeineError) return error;
  const [message, hint] = sentenceOf(error, place);
  return new SeineError(message, { hint, cause: error });
}

function sentenceOf(error: unknown, place: FleetPlace): [message: string, hint: string] {
  const { code } = error as NodeJS.ErrnoException;
  const text = messageOf(error);
  const redis = `Redis at ${place.shown}`;
  const setting = '--dispatch (SEINE_DISPATCH)';
  if (/^(WRONGPASS|ERR invalid password|ERR AUTH)/.test(text))
    return [`${redis} rejected the user name or password`, `correct them in ${setting}`];
  if (text.startsWith('NOAUTH'))
    return [`${redis} requires a password`, `put it into ${setting}: bullmq://:password@host:port`];
  if (text.startsWith('NOPERM'))
    return [`the user of ${redis} lacks a permission: ${text}`, 'give it ~* &* +@all'];
  if (/DB index is out of range/i.test(text))
    return [`${redis} does not have that database`, `correct the number in ${setting}`];
  if (text.startsWith('OOM')) return [`${redis} is out of memory`, 'give it more memory'];
  if (code && UNREACHABLE_CODES.has(code))
    return [`cannot reach ${redis}: ${code}`, `start it, or correct ${setting}`];
  if (code?.startsWith('ERR_SSL') || code?.startsWith('ERR_TLS') || /certificate/i.test(text))
    return [`cannot reach ${redis} with TLS: ${text}`, 'use bullmqs:// with TLS, bullmq:// without'];
  if (/^Connection is closed|Socket timeout/.test(text))
    return [`${redis} does not answer`, `check that it is a Redis server, or correct ${setting}`];
  return [`${redis} failed: ${text}`, `check it, and ${setting}`];
}
