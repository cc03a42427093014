import { randomBytes } from 'node:crypto';
import { chmod, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { provideProgram } from './provide-program.ts';
import { delay, findFreePort, ServerHome } from './server-process.ts';

export interface PostgresServer {
  host: string;
  port: number;
  /** Of a database of its own, as a superuser. */
  url: string;
  /** A further empty database; its URL. */
  createDatabase(): Promise<string>;
  /** kill -9 of the server and all its children. */
  kill9(): Promise<void>;
  /** After `kill9`, or instead of it: resolves when connections are accepted again. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

interface PostgresOptions {
  /** A server that may be killed: DATABASE_URL is not used. */
  own?: boolean;
  /** Writes survive kill -9 of the server either way; without it they need not survive a power cut. */
  fsync?: boolean;
  settings?: Record<string, string>;
  /** Of the user postgres; without it everybody on this machine is let in. */
  password?: string;
}

const START_TRIES = 5;
const READY_MS_MAX = 60_000;

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const given = process.env.DATABASE_URL;
  if (given && !options.own) return useGiven(given);
  const program = await provideProgram('postgres', { package: 'postgresql', variable: 'DATABASE_URL' });
  const home = await ServerHome.make('postgres');
  const data = join(home.folder, 'data');
  const { password } = options;
  const passwordFile = join(home.folder, 'password');
  try {
    const initdb = join(dirname(program), 'initdb');
    const auth =
      password === undefined ? ['--auth=trust'] : ['--auth=scram-sha-256', '--pwfile', passwordFile];
    if (password !== undefined) {
      await writeFile(passwordFile, password);
      // For the user of the server, whatever this process keeps from others.
      await chmod(passwordFile, 0o644);
    }
    const init = ['-D', data, '-U', 'postgres', '--no-sync', '--no-locale', '-E', 'UTF8', ...auth];
    await home.run(initdb, init);
    const port = await startOnFreePort(home, options, (chosen) => [
      program,
      serverArgs(data, home.folder, chosen, options),
    ]);
    return describe(home, port, adminUrl(port, options), [
      program,
      serverArgs(data, home.folder, port, options),
    ]);
  } catch (error) {
    await home.end('SIGKILL');
    await home.remove();
    throw error;
  }
}

function serverArgs(data: string, folder: string, port: number, options: PostgresOptions): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    fsync: options.fsync ? 'on' : 'off',
    max_connections: '50',
    ...options.settings,
  };
  const args = ['-D', data, '-p', String(port)];
  for (const [name, value] of Object.entries(settings)) args.push('-c', `${name}=${value}`);
  return args;
}

function adminUrl(port: number, { password }: PostgresOptions): string {
  return `postgres://postgres${password === undefined ? '' : `:${password}`}@127.0.0.1:${port}/postgres`;
}

async function startOnFreePort(
  home: ServerHome,
  options: PostgresOptions,
  command: (port: number) => [string, string[]],
): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = await findFreePort();
    home.start(...command(port));
    try {
      await untilReady(home, adminUrl(port, options));
      return port;
    } catch (error) {
      // Somebody else may have taken the port meanwhile.
      if (tries === START_TRIES) throw error;
      await home.end('SIGKILL');
    }
  }
}

function describe(
  home: ServerHome,
  port: number,
  admin: string,
  command: [string, string[]],
): PostgresServer {
  return {
    host: '127.0.0.1',
    port,
    url: admin,
    createDatabase: () => createDatabase(admin),
    kill9: () => home.end('SIGKILL'),
    async restart() {
      await home.end('SIGINT');
      home.start(...command);
      await untilReady(home, admin);
    },
    async stop() {
      await home.end('SIGQUIT');
      await home.remove();
    },
  };
}

async function untilReady(home: ServerHome, admin: string): Promise<void> {
  const givenUpAt = performance.now() + READY_MS_MAX;
  for (;;) {
    if (!home.running) throw new Error(`PostgreSQL ended at its start: ${home.output}`);
    try {
      await execute(admin, 'SELECT 1');
      return;
    } catch (error) {
      if (performance.now() > givenUpAt)
        throw new Error(`PostgreSQL is not ready: ${error}; it says: ${home.output}`);
      await delay(20);
    }
  }
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(statement);
  } finally {
    await client.end().catch(() => {});
  }
}

async function createDatabase(admin: string): Promise<string> {
  const name = `seine_test_${randomBytes(6).toString('hex')}`;
  await execute(admin, `CREATE DATABASE ${name}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return url.href;
}

/** Somebody's server: only databases of our own are used, and removed at the end. */
async function useGiven(given: string): Promise<PostgresServer> {
  const { hostname, port } = new URL(given);
  const made: string[] = [];
  const refuse = async () => {
    throw new Error('this test needs a server of its own: call startPostgres({ own: true })');
  };
  const create = async () => {
    const url = await createDatabase(given);
    made.push(new URL(url).pathname.slice(1));
    return url;
  };
  return {
    host: hostname,
    port: Number(port || 5432),
    url: await create(),
    createDatabase: create,
    kill9: refuse,
    restart: refuse,
    async stop() {
      for (const name of made) await execute(given, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}
