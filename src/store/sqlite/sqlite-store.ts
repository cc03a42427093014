import type { HostStore, RobotsEntry, Store } from '../../ports/store.ts';
import { openCheckpointer } from './checkpointer.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { SqliteFrontier } from './frontier.ts';
import { TaskInserter } from './insert-tasks.ts';
import { SqliteJobStore } from './job-store.ts';
import { WAITING } from './rows.ts';
import { SqliteViews } from './views.ts';

export interface SqliteStoreOptions extends DatabaseOptions {
  /** Checkpoints in a thread of their own: for whoever writes much. */
  checkpointThread?: boolean;
}

export function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  const db = new Database(path, options);
  const checkpointer = options.checkpointThread ? openCheckpointer(path) : null;
  const inserter = new TaskInserter(db);
  return {
    jobs: new SqliteJobStore(db),
    frontier: new SqliteFrontier(db, inserter),
    hosts: new SqliteHostStore(db),
    views: new SqliteViews(db, inserter),
    async close() {
      await checkpointer?.close();
      db.close();
    },
  };
}

class SqliteHostStore implements HostStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async robots(origin: string): Promise<RobotsEntry | null> {
    const row = this.#db.get<RobotsEntry>(
      `SELECT origin, host, text, fetched_at AS fetchedAt, failures, detail, crawl_delay_ms AS crawlDelayMs
       FROM robots WHERE origin = ?`,
      origin,
    );
    return row ? { ...row } : null;
  }

  async clampNextAt(latest: number): Promise<void> {
    this.#db.transaction(() => {
      this.#db.run('UPDATE hosts SET next_at = ? WHERE next_at > ?', latest, latest);
      this.#db.run('UPDATE queues SET next_at = ? WHERE next_at > ?', latest, latest);
      this.#db.run(`UPDATE tasks SET due_at = ? WHERE state = ${WAITING} AND due_at > ?`, latest, latest);
    });
  }
}
