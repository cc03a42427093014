import type { DeadFilter, Rewrite, Views } from '../../../ports/store.ts';
import type { QueryOptions } from '../../../ports/views.ts';
import { ReadViews } from '../../shared/views/read-views.ts';
import type { Database } from '../connection/database.ts';
import { SqliteReader } from '../connection/reader.ts';
import type { TaskInserter } from '../frontier/insert-tasks.ts';
import { retryInTransaction } from '../frontier/reopen.ts';
import { runQuery } from './query.ts';
import { rewriteInTransaction } from './rewrite.ts';

export class SqliteViews extends ReadViews implements Views {
  readonly #db: Database;
  readonly #reader: SqliteReader;
  readonly #inserter: TaskInserter;

  constructor(db: Database, inserter: TaskInserter) {
    const reader = new SqliteReader(db);
    super(reader);
    this.#db = db;
    this.#reader = reader;
    this.#inserter = inserter;
  }

  query(sql: string, options: QueryOptions = {}): AsyncIterable<Record<string, unknown>> {
    return runQuery(this.#db.path, sql, options);
  }

  async retryDead(jobId: number, filter: DeadFilter, now: number): Promise<number> {
    return this.#db.transaction(() => retryInTransaction(this.#db, this.#reader, { jobId, filter, now }));
  }

  async rewrite(jobId: number, rewrite: Rewrite): Promise<void> {
    this.#db.transaction(() => rewriteInTransaction(this.#db, this.#inserter, jobId, rewrite));
  }

  protected async findTask(jobId: number, url: string): Promise<number | null> {
    return this.#inserter.find(jobId, url);
  }
}
