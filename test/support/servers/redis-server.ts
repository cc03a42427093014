import { createConnection } from 'node:net';
import { provideProgram } from './provide-program.ts';
import { delay, findFreePort, ServerHome } from './server-process.ts';

export interface RedisServer {
  host: string;
  port: number;
  url: string;
  /** kill -9, with nothing saved that the settings do not save. */
  kill9(): Promise<void>;
  /** After `kill9`, or instead of it: resolves when it answers again. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

interface RedisOptions {
  /** A server that may be killed and flushed: REDIS_URL is not used. */
  own?: boolean;
  /** As in redis.conf, over the defaults: `{ maxmemory: '2mb', requirepass: 'secret' }`. */
  settings?: Record<string, string>;
}

const START_TRIES = 5;
const READY_MS_MAX = 30_000;

export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const given = process.env.REDIS_URL;
  if (given && !options.own) return useGiven(given);
  const program = await provideProgram('redis-server', { package: 'redis-server', variable: 'REDIS_URL' });
  const home = await ServerHome.make('redis');
  const command = (port: number): [string, string[]] => {
    const settings = { bind: '127.0.0.1', port: String(port), dir: home.folder, ...options.settings };
    return [program, Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])];
  };
  try {
    const port = await startOnFreePort(home, command);
    const password = options.settings?.requirepass;
    return {
      host: '127.0.0.1',
      port,
      url: `redis://${password ? `:${encodeURIComponent(password)}@` : ''}127.0.0.1:${port}`,
      kill9: () => home.end('SIGKILL'),
      async restart() {
        await home.end('SIGTERM');
        home.start(...command(port));
        await untilReady(home, port);
      },
      async stop() {
        await home.end('SIGKILL');
        await home.remove();
      },
    };
  } catch (error) {
    await home.end('SIGKILL');
    await home.remove();
    throw error;
  }
}

async function startOnFreePort(
  home: ServerHome,
  command: (port: number) => [string, string[]],
): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = await findFreePort();
    home.start(...command(port));
    try {
      await untilReady(home, port);
      return port;
    } catch (error) {
      // Somebody else may have taken the port meanwhile.
      if (tries === START_TRIES) throw error;
      await home.end('SIGKILL');
    }
  }
}

async function untilReady(home: ServerHome, port: number): Promise<void> {
  const givenUpAt = performance.now() + READY_MS_MAX;
  while (!(await answers(port))) {
    if (!home.running) throw new Error(`Redis ended at its start: ${home.output}`);
    if (performance.now() > givenUpAt) throw new Error(`Redis is not ready: ${home.output}`);
    await delay(20);
  }
}

/** An answer to PING, or that a password is wanted; while it loads its data it says LOADING. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port }, () => socket.write('PING\r\n'));
    const finish = (ready: boolean) => {
      socket.destroy();
      resolve(ready);
    };
    socket.setTimeout(2_000, () => finish(false));
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.once('data', (bytes) => finish(/^(\+PONG|-NOAUTH)/.test(bytes.toString())));
  });
}

/** Somebody's server: tests keep to keys of their own and must not flush it. */
function useGiven(given: string): RedisServer {
  const { hostname, port } = new URL(given);
  const refuse = async () => {
    throw new Error('this test needs a server of its own: call startRedis({ own: true })');
  };
  return {
    host: hostname,
    port: Number(port || 6379),
    url: given,
    kill9: refuse,
    restart: refuse,
    stop: async () => {},
  };
}
