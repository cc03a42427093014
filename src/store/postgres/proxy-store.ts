import type { ProxyRow, ProxyStore } from '../../ports/store/proxy-store.ts';
import type { Database } from './connection/database.ts';
import { toRows } from './connection/rows.ts';

export class PostgresProxyStore implements ProxyStore {
  readonly #db: Database;
  readonly #reads: Pick<Database, 'read'>;

  constructor(db: Database, reads: Pick<Database, 'read'>) {
    this.#db = db;
    this.#reads = reads;
  }

  async load(since: number, limit: number): Promise<ProxyRow[]> {
    const rows = await this.#db.read<{ proxy: string; host: string; health: string }>(
      'SELECT proxy, host, health FROM proxy_health WHERE noted_at >= $1 ORDER BY noted_at DESC LIMIT $2',
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
    const texts = rows.map(({ proxy, host, health }) => ({
      proxy,
      host: host ?? '',
      health: JSON.stringify(health),
      noted_at: Math.floor(health.at),
    }));
    await this.#db.write(async (tx) => {
      if (texts.length > 0) await tx.run(UPSERT, toRows(texts));
      await tx.run('DELETE FROM proxy_health WHERE noted_at < $1', Math.floor(forgetBefore));
    });
  }

  async addCost(jobId: number, cost: number): Promise<void> {
    await this.#db.write((tx) => tx.run(ADD_COST, jobId, cost));
  }

  async cost(jobId: number): Promise<number> {
    const rows = await this.#reads.read<{ cost: number }>(
      'SELECT cost FROM api_costs WHERE job_id = $1',
      jobId,
    );
    return rows[0]?.cost ?? 0;
  }
}

/** In the order of their keys, so that coordinators beside each other do not wait in a circle. */
const UPSERT = `
  INSERT INTO proxy_health (proxy, host, health, noted_at)
  SELECT proxy, host, health, noted_at
  FROM json_to_recordset($1::json) AS row (proxy text, host text, health text, noted_at bigint)
  ORDER BY proxy, host
  ON CONFLICT (proxy, host) DO UPDATE SET health = excluded.health, noted_at = excluded.noted_at
  WHERE excluded.noted_at >= proxy_health.noted_at`;

const ADD_COST = `
  INSERT INTO api_costs (job_id, cost) VALUES ($1, $2)
  ON CONFLICT (job_id) DO UPDATE SET cost = api_costs.cost + excluded.cost`;
