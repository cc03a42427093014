import type { ApiKey, KeyStore, KeyUsage } from '../../ports/store/key-store.ts';
import {
  type KeyColumns,
  SELECT_KEYS,
  selectTasksOut,
  selectUnderWay,
  selectUsage,
  toKey,
  toUsage,
} from '../shared/key-rows.ts';
import type { Database } from './connection/database.ts';

export class SqliteKeyStore implements KeyStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async create(key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null> {
    return this.#db.transaction(() => this.#insert(key));
  }

  async replace(key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null> {
    return this.#db.transaction(() => {
      this.#db.run('DELETE FROM api_keys WHERE id = ?', key.id);
      return this.#insert(key);
    });
  }

  async byHash(hash: string): Promise<ApiKey | null> {
    return this.#read('hash = ? AND revoked_at IS NULL', hash);
  }

  async byId(id: string): Promise<ApiKey | null> {
    return this.#read('id = ?', id);
  }

  async hasSome(): Promise<boolean> {
    return this.#db.get('SELECT 1 FROM api_keys WHERE revoked_at IS NULL LIMIT 1') !== undefined;
  }

  async list(): Promise<ApiKey[]> {
    return this.#db.all<KeyColumns>(`${SELECT_KEYS} ORDER BY created_at DESC, id`).map(toKey);
  }

  async revoke(id: string, now: number): Promise<ApiKey | null> {
    return this.#db.transaction(() => {
      this.#db.run('UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?', now, id);
      return this.#read('id = ?', id);
    });
  }

  async pagesUnderWay(id: string): Promise<number> {
    return this.#db.get<{ pages: number }>(selectUnderWay('?'), id)!.pages;
  }

  async tasksOut(id: string): Promise<number> {
    return this.#db.get<{ tasks: number }>(selectTasksOut('?'), id)!.tasks;
  }

  async usage(id: string, day: number): Promise<KeyUsage> {
    return toUsage(this.#db.get<KeyUsage>(selectUsage('?', '?'), id, day));
  }

  async use(...[id, day, used, max]: Parameters<KeyStore['use']>): Promise<boolean> {
    const { pages, cost } = used;
    return this.#db.run(USE, id, day, pages, cost, max.pages, max.cost) > 0;
  }

  #insert({ id, name, hash, scope, limits, createdAt }: Omit<ApiKey, 'revokedAt'>): ApiKey | null {
    if (this.#read('name = ? AND revoked_at IS NULL', name)) return null;
    this.#db.run(
      'INSERT INTO api_keys (id, name, hash, scope, limits, created_at) VALUES (?, ?, ?, ?, ?, ?)',
      id,
      name,
      hash,
      scope,
      JSON.stringify(limits),
      createdAt,
    );
    return this.#read('id = ?', id);
  }

  #read(where: string, ...values: string[]): ApiKey | null {
    const row = this.#db.get<KeyColumns>(`${SELECT_KEYS} WHERE ${where}`, ...values);
    return row ? toKey(row) : null;
  }
}

const USE = `
  INSERT INTO key_usage (key_id, day, pages, cost)
  SELECT ?1, ?2, ?3, ?4 WHERE ?3 <= coalesce(?5, ?3) AND ?4 <= coalesce(?6, ?4)
  ON CONFLICT (key_id, day) DO UPDATE SET pages = pages + excluded.pages, cost = cost + excluded.cost
  WHERE pages + excluded.pages <= coalesce(?5, pages + excluded.pages)
    AND cost + excluded.cost <= coalesce(?6, cost + excluded.cost)`;
