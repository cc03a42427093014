import { hash } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { messageOf, SeineError, StorageFullError } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/values/canonical-json.ts';
import { memoryShare } from '../../../machine/machine.ts';
import { type Migration, migrationsAfter } from '../../shared/migration.ts';
import { MIGRATIONS } from '../migrations/migrations.ts';
import { NEW_TABLES } from '../migrations/new-tables.ts';
import { WRITER_PAGES } from './checkpointer.ts';
import { makePrivate } from './private-file.ts';

type Row = Record<string, unknown>;

export interface DatabaseOptions {
  /** `full` also survives a power cut without losing the last settles; `normal` survives any process death. */
  sync?: 'normal' | 'full';
  readOnly?: boolean;
  /** False in a benchmark alone, which compares with it what roll-ups cost. */
  keepsRollups?: boolean;
}

/** A larger cache is no gain: SQLite walks all of it at the end of each transaction that has split a page. */
const CACHE_BYTES = memoryShare(1 / 64, { min: 2 * 1024 * 1024, max: 16 * 1024 * 1024 });

/** A connection with its prepared statements and the one way to run a transaction. */
export class Database {
  readonly path: string;
  readonly keepsRollups: boolean;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, options: DatabaseOptions = {}) {
    this.path = path;
    this.keepsRollups = options.keepsRollups ?? true;
    try {
      this.#db = new DatabaseSync(options.readOnly ? path : makePrivate(path), {
        readOnly: options.readOnly ?? false,
      });
      this.#db.exec(`
        PRAGMA busy_timeout = ${LOCK_MS_MAX};
        PRAGMA cache_size = -${Math.floor(CACHE_BYTES / 1_024)};
        PRAGMA temp_store = MEMORY;
      `);
      if (options.readOnly) return;
      // Pages of 8 KB: half the system calls of 4 KB where many are written, a third less copied than with 16 where one
      // URL is looked up among millions. Only new files take it.
      this.#db.exec(`
        PRAGMA page_size = 8192;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = ${options.sync === 'full' ? 'FULL' : 'NORMAL'};
        PRAGMA wal_autocheckpoint = ${WRITER_PAGES};
        PRAGMA journal_size_limit = 67108864;
      `);
      this.#migrate();
    } catch (error) {
      if (error instanceof SeineError) throw error;
      throw new SeineError(`cannot open the database ${path}: ${messageOf(error)}`, {
        hint: 'check that it is a Seine folder and that you can write to it',
        cause: error,
      });
    }
  }

  statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#db.prepare(sql.replace(BOUND_LIMIT, '$& + 0'));
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  get<T = Row>(sql: string, ...values: SQLInputValue[]): T | undefined {
    const named = namedIfNeeded(sql, values);
    const statement = this.statement(sql);
    return (named ? statement.get(named) : statement.get(...values)) as T | undefined;
  }

  all<T = Row>(sql: string, ...values: SQLInputValue[]): T[] {
    const named = namedIfNeeded(sql, values);
    const statement = this.statement(sql);
    return (named ? statement.all(named) : statement.all(...values)) as T[];
  }

  run(sql: string, ...values: SQLInputValue[]): number {
    try {
      const named = namedIfNeeded(sql, values);
      const statement = this.statement(sql);
      return Number((named ? statement.run(named) : statement.run(...values)).changes);
    } catch (error) {
      throw orFull(error, this.path);
    }
  }

  transaction<T>(work: () => T): T {
    try {
      this.#begin();
      const result = work();
      this.statement('COMMIT').run();
      return result;
    } catch (error) {
      // Where the disk is full, SQLite has rolled back by itself.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw orFull(error, this.path);
    }
  }

  /** Waits until no other connection writes. */
  #begin(): void {
    const begin = this.statement('BEGIN IMMEDIATE');
    // No other connection can have it, and the settings below are compiled each time they are made.
    if (this.path === IN_MEMORY) {
      begin.run();
      return;
    }
    const until = performance.now() + LOCK_MS_MAX;
    this.#db.exec('PRAGMA busy_timeout = 0');
    try {
      while (!isBegun(begin, performance.now() < until)) Atomics.wait(NEVER_WOKEN, 0, 0, LOCK_LOOK_MS);
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${LOCK_MS_MAX}`);
    }
  }

  /** A checkpoint by this connection once the log has so many pages. */
  readonly checkpointEvery = (pages: number): void => {
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
  };

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }

  #migrate(): void {
    if (this.#missing().length === 0) return;
    this.#db.function('record_hash', { deterministic: true }, (data) => recordHash(JSON.parse(String(data))));
    this.transaction(() => {
      // Read again inside the transaction: two processes may open a new folder at once.
      const missing = this.#missing();
      if (missing.length === MIGRATIONS.length && this.#isEmpty())
        this.#db.exec(`${NEW_TABLES}; PRAGMA user_version = ${missing.length}`);
      else for (const { number, sql } of missing) this.#db.exec(`${sql}; PRAGMA user_version = ${number}`);
    });
  }

  #isEmpty(): boolean {
    return this.get('SELECT 1 FROM sqlite_master') === undefined;
  }

  #missing(): readonly Migration[] {
    const version = Number(this.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0);
    return migrationsAfter(version, MIGRATIONS, '--dir');
  }
}

const IN_MEMORY = ':memory:';
/** Longer than any transaction. */
const LOCK_MS_MAX = 10_000;
/**
 * SQLite itself looks after 1, 2, 5, 10, 15, 20, 25 and more milliseconds whether the lock is free. A server at work takes it
 * for one or two of them every few, so that a command beside it slept through the times in which it was free.
 */
const LOCK_LOOK_MS = 0.25;
const NEVER_WOKEN = new Int32Array(new SharedArrayBuffer(4));

/** False when another connection writes and that is to be waited for. */
function isBegun(begin: StatementSync, mayWait: boolean): boolean {
  try {
    begin.run();
    return true;
  } catch (error) {
    if (mayWait && (error as { errcode?: unknown }).errcode === SQLITE_BUSY) return false;
    throw error;
  }
}

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_IOERR = 10;
/** Less than one transaction needs. */
const FREE_BYTES_MIN = 64 * 1024;

/** On a full disk most writes say so; to grow the index of the log, or to sync, is an I/O error instead. */
function orFull(error: unknown, path: string): unknown {
  const code = (error as { errcode?: unknown }).errcode;
  if (typeof code !== 'number' || error instanceof SeineError) return error;
  if (code !== SQLITE_FULL && !((code & 0xff) === SQLITE_IOERR && isDiskFull(path))) return error;
  return new StorageFullError(`the disk of ${path} is full`, { cause: error });
}

function isDiskFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < FREE_BYTES_MIN;
  } catch {
    return false;
  }
}

/** As workers hash what they extract: equal data has an equal hash, whatever the order of its fields. */
export function recordHash(data: object): string {
  return hash('sha256', canonicalJson(data));
}

/**
 * The planner looks at the value of a bound limit, and so SQLite compiles the statement anew each time one is bound: 4.7 µs
 * instead of 0.4 for the shortest, and more than all else for those that are run with every plan. An expression is no value.
 */
const BOUND_LIMIT = /\bLIMIT \?\d*/gi;

/** Node 22 takes `?1` for a name, to which values in a row are not bound. */
const NUMBERS_ARE_NAMES = Number(process.versions.node.split('.')[0]) < 24;

function namedIfNeeded(sql: string, values: SQLInputValue[]): Record<string, SQLInputValue> | null {
  if (!NUMBERS_ARE_NAMES || !/\?\d/.test(sql)) return null;
  return Object.fromEntries(values.map((value, index) => [`?${index + 1}`, value]));
}
