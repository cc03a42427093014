import type { ProxyRow, ProxyStore } from '../../ports/store/proxy-store.ts';
import type { Database } from './connection/database.ts';

export class SqliteProxyStore implements ProxyStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async load(since: number, limit: number): Promise<ProxyRow[]> {
    const rows = this.#db.all<{ proxy: string; host: string; health: string }>(
      'SELECT proxy, host, health FROM proxy_health WHERE noted_at >= ? ORDER BY noted_at DESC LIMIT ?',
      Math.floor(since),
      limit,
    );
    return rows.map(({ proxy, host, health }) => ({
      proxy,
      host: host === '' ? null : host,
      health: JSON.parse(health),
    }));
  }

  async save(rows: readonly ProxyRow[], forgetBefore: number): Promise<void> {
    this.#db.transaction(() => {
      for (const { proxy, host, health } of rows)
        this.#db.run(UPSERT, proxy, host ?? '', JSON.stringify(health), Math.floor(health.at));
      this.#db.run('DELETE FROM proxy_health WHERE noted_at < ?', Math.floor(forgetBefore));
    });
  }

  async addCost(jobId: number, cost: number): Promise<void> {
    this.#db.run(
      `INSERT INTO api_costs (job_id, cost) VALUES (?, ?) ON CONFLICT (job_id) DO UPDATE SET cost = cost + excluded.cost`,
      jobId,
      cost,
    );
  }

  async cost(jobId: number): Promise<number> {
    return this.#db.get<{ cost: number }>('SELECT cost FROM api_costs WHERE job_id = ?', jobId)?.cost ?? 0;
  }
}

const UPSERT = `
  INSERT INTO proxy_health (proxy, host, health, noted_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (proxy, host) DO UPDATE SET health = excluded.health, noted_at = excluded.noted_at
  WHERE excluded.noted_at >= noted_at`;
