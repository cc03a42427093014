import type { DeadFilter, Rewrite, Views } from '../../../ports/store.ts';
import type { QueryOptions } from '../../../ports/views.ts';
import { ReadViews } from '../../shared/views/read-views.ts';
import type { ConnectionOptions } from '../connection/connections.ts';
import type { Database } from '../connection/database.ts';
import { PostgresReader, type ReadDatabases } from '../connection/reader.ts';
import { findTask } from '../frontier/find-tasks.ts';
import type { JobMemories } from '../frontier/job-memory.ts';
import { retryInTransaction } from '../frontier/reopen.ts';
import { runQuery } from './query.ts';
import { rewriteInTransaction } from './rewrite.ts';

export class PostgresViews extends ReadViews implements Views {
  readonly #db: Database;
  readonly #reads: ReadDatabases;
  readonly #memories: JobMemories;
  readonly #connectionOptions: ConnectionOptions;

  constructor(
    db: Database,
    reads: ReadDatabases,
    memories: JobMemories,
    connectionOptions: ConnectionOptions,
  ) {
    super(new PostgresReader(reads));
    this.#db = db;
    this.#reads = reads;
    this.#memories = memories;
    this.#connectionOptions = connectionOptions;
  }

  query(sql: string, options: QueryOptions = {}): AsyncIterable<Record<string, unknown>> {
    return runQuery(this.#connectionOptions, sql, options);
  }

  async retryDead(jobId: number, filter: DeadFilter, now: number): Promise<number> {
    return this.#db.write((tx) => retryInTransaction(tx, jobId, filter, now), { slow: true });
  }

  async rewrite(jobId: number, rewrite: Rewrite): Promise<void> {
    const memory = await this.#memories.of(jobId);
    await this.#db.write((tx) => rewriteInTransaction(tx, jobId, memory, rewrite));
  }

  protected async findTask(jobId: number, url: string): Promise<number | null> {
    const { seed } = await this.#memories.of(jobId);
    const { quick } = this.#reads;
    return findTask(quick.read.bind(quick), jobId, seed, url);
  }
}
