import { randomInt } from 'node:crypto';
import { messageOf } from '../../../core/errors.ts';
import type { Logger } from '../../../ports/ambient.ts';
import { type Connection, type ConnectionOptions, Connections, pause, SLOW_MS } from './connections.ts';
import { isAftermath, toSeineError, troubleOf } from './failures.ts';

interface DatabaseOptions extends ConnectionOptions {
  connections: number;
  /** Of the first connection: rows that every transaction changes are this process's own from there on. */
  firstShard?(): number;
  /** How long a database that does not answer is waited for. */
  patienceMs: number;
  logger: Logger;
}

/** Statements inside one transaction. */
export interface Transaction {
  /** Which of the connections of all coordinators: rows that every transaction changes are kept apart by it. */
  readonly shard: number;
  /** Several may be under way: they are done in the order in which they were sent. */
  run<T = unknown>(text: string, ...values: unknown[]): Promise<T[]>;
  /** Statements whose answer is not needed are not waited for: COMMIT fails if they do. */
  finally(work: Promise<unknown>): void;
  /** For what is only true once it is written. */
  afterCommit(work: () => void): void;
}

interface WriteOptions {
  /** Goes over many rows. */
  slow?: boolean;
  /** Before all others that wait for a connection. */
  first?: boolean;
}

/** A connection that broke and was made again at once is not worth a word. */
const QUIET_MS = 1_000;
const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 1_000;
/** A transaction that always loses against others, or a statement that is always too slow, is a fault after so many. */
const AGAIN_MAX = 20;

/** Runs what the store asks for, and waits out what passes: a restart, a failover, a broken connection. */
export class Database {
  readonly #options: DatabaseOptions;
  readonly #connections: Connections;
  /** Since when nothing has worked. */
  #downSince: number | null = null;
  #closed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#connections = new Connections(options, options.connections);
  }

  /** One statement that may be done again without harm. */
  async read<T = unknown>(text: string, ...values: unknown[]): Promise<T[]> {
    return this.#retrying((connection) => connection.run<T>(text, values));
  }

  /** The same for statements that look at many rows. */
  async readSlowly<T = unknown>(text: string, ...values: unknown[]): Promise<T[]> {
    return this.#retrying(async (connection) => {
      await connection.command(`BEGIN; SET LOCAL statement_timeout = ${SLOW_MS}`);
      const rows = await connection.run<T>(text, values, SLOW_MS);
      await connection.command('COMMIT');
      return rows;
    });
  }

  /**
   * All or nothing, and exactly once, also when the connection breaks at the worst moment. `work` may be called
   * several times: what it leaves behind outside of the transaction belongs into `afterCommit`.
   */
  async write<T>(work: (tx: Transaction) => Promise<T>, options: WriteOptions = {}): Promise<T> {
    return this.#retrying(this.#writing(work, options), options.first);
  }

  /**
   * The same for work that is chosen when a connection is free for it; `next` is asked once. Null: there is nothing left to
   * do, and nothing is sent.
   */
  async writeNext<T>(next: () => ((tx: Transaction) => Promise<T>) | null): Promise<T | null> {
    return this.#connections.use(async (connection) => {
      const work = next();
      return work && this.#tryOn(connection, this.#writing(work, {}));
    });
  }

  /** How many connections there are for work. */
  get size(): number {
    return this.#connections.size;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#connections.close();
  }

  /** Forgets the connections in the table of writes; the last thing that a store does. */
  async forgetWrites(): Promise<void> {
    await this.read('DELETE FROM writes WHERE connection = ANY($1::bigint[])', this.#connections.ids);
  }

  #writing<T>(
    work: (tx: Transaction) => Promise<T>,
    options: WriteOptions,
  ): (connection: Connection) => Promise<T> {
    /** Set while it is unknown whether the last try was written. */
    let inDoubt: { id: number; result: T; after: (() => void)[] } | null = null;
    return async (connection) => {
      if (inDoubt) {
        if (await wasWritten(connection, inDoubt.id)) {
          for (const each of inDoubt.after) each();
          return inDoubt.result;
        }
        inDoubt = null;
      }
      const id = randomInt(2 ** 47);
      const after: (() => void)[] = [];
      const timeoutMs = options.slow ? SLOW_MS : connection.silenceMs;
      const open: Promise<unknown>[] = [];
      const keep = (work: Promise<unknown>) => {
        work.catch(() => {});
        open.push(work);
      };
      keep(begin(connection, id, timeoutMs));
      try {
        const result = await work({
          shard: (this.#options.firstShard?.() ?? 0) + connection.index,
          run: (text, ...values) => connection.run(text, values, timeoutMs),
          finally: keep,
          afterCommit: (each) => after.push(each),
        });
        inDoubt = { id, result, after };
        const committed = connection.execute('COMMIT', [], timeoutMs);
        keep(committed);
        await pipelined(...open);
        if ((await committed).command !== 'COMMIT') throw new Error('the transaction was rolled back');
        for (const each of after) each();
        return result;
      } catch (found) {
        const error = isAftermath(found) ? await firstFailure(open, found) : found;
        if (troubleOf(error) !== 'lost') {
          inDoubt = null;
          await connection.command('ROLLBACK').catch(() => connection.drop());
        }
        throw error;
      }
    };
  }

  #retrying<T>(work: (connection: Connection) => Promise<T>, first = false): Promise<T> {
    return this.#connections.use((connection) => this.#tryOn(connection, work), first);
  }

  async #tryOn<T>(connection: Connection, work: (connection: Connection) => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    for (let tries = 1; ; tries++) {
      try {
        await connection.open();
        const result = await work(connection);
        this.#noteUp();
        return result;
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === 'lost') connection.drop();
        const waitedMs = performance.now() - startedAt;
        const isOver = trouble === 'again' ? tries > AGAIN_MAX : waitedMs > this.#options.patienceMs;
        if (trouble === 'fatal' || isOver || this.#closed)
          throw toSeineError(error, this.#options.place.shown);
        if (trouble !== 'again' && waitedMs > QUIET_MS) this.#noteDown(error);
        await pause(pauseMs(tries));
      }
    }
  }

  #noteDown(error: unknown): void {
    if (this.#downSince !== null) return;
    this.#downSince = performance.now();
    this.#options.logger.warn(`the database does not answer, retrying: ${messageOf(error)}`);
  }

  #noteUp(): void {
    if (this.#downSince === null) return;
    const seconds = Math.round((performance.now() - this.#downSince) / 100) / 10;
    this.#downSince = null;
    this.#options.logger.warn(`the database answers again after ${seconds} s`);
  }
}

/** Leaves a mark that is there only if everything else is. */
function begin(connection: Connection, id: number, timeoutMs: number): Promise<unknown> {
  const slow = timeoutMs === connection.silenceMs ? [] : [`SET LOCAL statement_timeout = ${timeoutMs}`];
  return pipelined(
    ...['BEGIN', ...slow].map((text) => connection.execute(text, [], timeoutMs)),
    connection.execute(MARK_WRITE, [connection.id, id], timeoutMs),
  );
}

const MARK_WRITE = `
  INSERT INTO writes (connection, last, at) VALUES ($1, $2, now())
  ON CONFLICT (connection) DO UPDATE SET last = excluded.last, at = excluded.at`;

/** Asked over a new connection, when the one that was lost has been ended. */
async function wasWritten(connection: Connection, id: number): Promise<boolean> {
  const rows = await connection.run('SELECT 1 FROM writes WHERE connection = $1 AND last = $2', [
    connection.id,
    id,
  ]);
  return rows.length > 0;
}

function pauseMs(tries: number): number {
  return Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(tries, 10)) * (0.5 + Math.random() / 2);
}

async function firstFailure(work: readonly Promise<unknown>[], otherwise: unknown): Promise<unknown> {
  return pipelined(...work).then(
    () => otherwise,
    (error) => error,
  );
}

/** Waits for all of them, so that nothing is under way when the first failure is thrown. */
export async function pipelined<T extends readonly unknown[]>(
  ...work: { [K in keyof T]: Promise<T[K]> }
): Promise<T> {
  const results = await Promise.allSettled(work);
  const failed = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
  if (failed.length > 0) throw failed.find((reason) => !isAftermath(reason)) ?? failed[0];
  return (await Promise.all(work)) as T;
}
