import { randomBytes, randomInt } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { Client, ClientConfig, QueryResult } from 'pg';
import type { MakeGroup, Prepared, Statement } from './statement-group.ts';
import type { StorePlace } from './store-url.ts';

/** For the few statements that go over all rows. */
export const SLOW_MS = 600_000;
const CONNECT_MS = 10_000;
const PLAN_USES_MIN = 20;
const PLAN_MS = 30_000;

/**
 * Plans are kept, and are made when tables are still empty: reading a whole table would look cheap, and
 * would stay so in a plan when it has millions of rows. Every statement here has its index.
 */
const SETTINGS: Record<string, string | number> = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
  idle_in_transaction_session_timeout: 30_000,
  client_min_messages: 'warning',
  tcp_keepalives_idle: 10,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
};

export interface ConnectionOptions {
  place: StorePlace;
  /** How the driver makes a connection; given by whoever has loaded it. */
  connect(config: ClientConfig): Client;
  makeGroup: MakeGroup;
  /** A connection that says nothing for so long is dead. */
  silenceMs: number;
  /** False leaves the planner as it is, for queries of people. */
  planned?: boolean;
}

/** One connection at a time, made anew when it was lost. Used by one caller at a time. */
export class Connection {
  /** Names this connection in the table of writes. */
  readonly id = randomInt(2 ** 47);
  readonly index: number;
  readonly silenceMs: number;
  readonly #options: ConnectionOptions;
  readonly #name = `seine-${randomBytes(5).toString('hex')}`;
  #client: Client | null = null;
  #connections = 0;
  #lostName: string | null = null;
  #uses = 0;
  #renewAt = 0;
  /** Statements by text: prepared once in each connection. */
  #prepared = new Map<string, Prepared>();
  /** What is sent at the end of this turn, in one piece. */
  #gathered: Statement[] = [];
  #gatheredMs = 0;

  constructor(options: ConnectionOptions, index: number) {
    this.#options = options;
    this.index = index;
    this.silenceMs = options.silenceMs;
  }

  /** Forgets plans now and then: they were made for tables that have grown since. */
  #renewPlans(client: Client): void {
    this.#uses++;
    if (this.#uses < PLAN_USES_MIN || performance.now() < this.#renewAt) return;
    this.#uses = 0;
    this.#renewAt = performance.now() + PLAN_MS;
    client.query('DISCARD PLANS').catch(() => {});
  }

  /** Connects if need be; afterwards nothing of a lost connection can take effect any more. */
  async open(): Promise<void> {
    if (this.#client) {
      this.#renewPlans(this.#client);
      return;
    }
    const name = `${this.#name}-${this.#connections++}`;
    const client = this.#options.connect(clientConfig(this.#options, name));
    // Whoever waits for an answer gets the error; between two answers the next one does.
    client.on('error', () => this.drop(client));
    client.on('end', () => this.drop(client));
    try {
      await client.connect();
      if (this.#lostName !== null) await endBackend(client, this.#lostName, this.silenceMs);
      this.#lostName = name;
      this.#prepared = new Map();
      this.#client = client;
    } catch (error) {
      destroy(client);
      throw error;
    }
  }

  /** Sends a statement behind those that are under way already. */
  async run<T>(text: string, values: unknown[], timeoutMs = this.silenceMs): Promise<T[]> {
    const { rows } = await this.execute(text, values, timeoutMs);
    return rows as T[];
  }

  /** The same for whoever asks what was done. */
  execute(
    text: string,
    values: unknown[] = [],
    timeoutMs = this.silenceMs,
  ): Promise<{ rows: unknown[]; command: string }> {
    const client = this.#client;
    if (!client) return Promise.reject(new Error('Connection terminated'));
    return new Promise((resolve, reject) => {
      if (this.#gathered.length === 0) process.nextTick(() => this.#sendGathered(client));
      this.#gathered.push({ text, values, resolve, reject });
      this.#gatheredMs = Math.max(this.#gatheredMs, timeoutMs);
    });
  }

  /** One or more statements without values, unprepared. */
  async command(text: string, timeoutMs = this.silenceMs): Promise<string> {
    if (!this.#client) throw new Error('Connection terminated');
    this.#sendGathered(this.#client);
    const config = { text, query_timeout: timeoutMs } as { text: string };
    const result: QueryResult | QueryResult[] = await this.#client.query(config);
    return (Array.isArray(result) ? result.at(-1)! : result).command;
  }

  drop(client = this.#client): void {
    if (client && client === this.#client) this.#client = null;
    if (client) destroy(client);
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    if (client) await atMost(1_000, client.end());
    if (client) destroy(client);
  }

  /** System calls were a quarter of all our time, and answers one by one as much of the server's. */
  #sendGathered(client: Client): void {
    const statements = this.#gathered;
    if (statements.length === 0) return;
    const timeoutMs = this.#gatheredMs;
    this.#gathered = [];
    this.#gatheredMs = 0;
    const { makeGroup } = this.#options;
    client.query(makeGroup({ statements, prepared: this.#prepared, timeoutMs, readerOf }));
  }
}

export function clientConfig(options: ConnectionOptions, name: string): ClientConfig {
  const { place, silenceMs, planned = true } = options;
  const timeouts = { statement_timeout: silenceMs, lock_timeout: Math.ceil(silenceMs / 2) };
  const settings = { search_path: place.schema, ...(planned ? { ...SETTINGS, ...timeouts } : {}) };
  const flags = Object.entries(settings).map(([key, value]) => `-c ${key}=${value}`);
  const given = new URL(place.url).searchParams.get('options');
  return {
    connectionString: place.url,
    application_name: name,
    options: [...flags, ...(given === null ? [] : [given])].join(' '),
    connectionTimeoutMillis: Math.min(CONNECT_MS, silenceMs),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: { getTypeParser: readerOf },
    // Statements follow each other without waiting for answers that they do not need.
    pipeline: planned,
  } as ClientConfig;
}

/** A connection that broke here may live on there, with locks, and with a COMMIT that it has not read yet. */
async function endBackend(client: Client, name: string, patienceMs: number): Promise<void> {
  const until = performance.now() + patienceMs;
  while (true) {
    const { rows } = await client.query({
      text: 'SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
      values: [name],
      query_timeout: patienceMs,
    } as { text: string });
    if (rows.length === 0) return;
    if (performance.now() > until)
      throw new Error('Connection terminated: the previous connection does not close');
    await pause(20);
  }
}

function streamOf(client: Client): Duplex {
  return (client as { connection: { stream: Duplex } }).connection.stream;
}

function destroy(client: Client): void {
  streamOf(client).destroy();
}

/** Waits for something, but not for long, and whatever becomes of it. */
export async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  work.then(
    () => resolve(),
    () => resolve(),
  );
  await promise;
  clearTimeout(timer);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Up to a number of connections, each made when it is first needed, and a queue for whoever comes when all are taken. */
export class Connections {
  readonly #all: readonly Connection[];
  /** The lowest number is used first: a quiet store keeps few connections. */
  readonly #free: Set<Connection>;
  readonly #waiting: ((connection: Connection) => void)[] = [];

  constructor(options: ConnectionOptions, count: number) {
    this.#all = Array.from({ length: count }, (_, index) => new Connection(options, index));
    this.#free = new Set(this.#all);
  }

  get size(): number {
    return this.#all.length;
  }

  get ids(): number[] {
    return this.#all.map(({ id }) => id);
  }

  /** `first`: before all others that wait. */
  async use<T>(work: (connection: Connection) => Promise<T>, first = false): Promise<T> {
    const connection = this.#take() ?? (await this.#next(first));
    try {
      return await work(connection);
    } finally {
      this.#giveBack(connection);
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.close()));
  }

  #next(first: boolean): Promise<Connection> {
    return new Promise((resolve) => {
      if (first) this.#waiting.unshift(resolve);
      else this.#waiting.push(resolve);
    });
  }

  #take(): Connection | null {
    let first: Connection | null = null;
    for (const connection of this.#free)
      if (first === null || connection.index < first.index) first = connection;
    if (first) this.#free.delete(first);
    return first;
  }

  #giveBack(connection: Connection): void {
    const next = this.#waiting.shift();
    if (next) next(connection);
    else this.#free.add(connection);
  }
}

const BOOL = 16;
const BYTEA = 17;
/** smallint, integer, bigint, oid, real, double precision, numeric: all that we count fits a number. */
const NUMBERS = new Set([20, 21, 23, 26, 700, 701, 1700]);

const asIs = (text: string) => text;
const asBoolean = (text: string) => text === 't';
/** `\x` and hexadecimal digits, of which only the digits are wanted. */
const asHex = (text: string) => text.slice(2);

const TIMESTAMPTZ = 1184;
const JSONB = 3802;
const asIsoTime = (text: string) => new Date(text).toISOString();
/** As SQLite has it: `jsonb` is written with spaces. */
const asCompactJson = (text: string) => JSON.stringify(JSON.parse(text));

/** JSON stays text: whoever wants it parses it. So do times, as everywhere in our tables. */
function readerOf(type: number): (text: string) => unknown {
  if (NUMBERS.has(type)) return Number;
  if (type === BOOL) return asBoolean;
  if (type === TIMESTAMPTZ) return asIsoTime;
  if (type === JSONB) return asCompactJson;
  return type === BYTEA ? asHex : asIs;
}
