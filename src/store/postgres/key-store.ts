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
import type { Database, Transaction } from './connection/database.ts';

export class PostgresKeyStore implements KeyStore {
  readonly #db: Database;
  readonly #reads: Pick<Database, 'read'>;

  constructor(db: Database, reads: Pick<Database, 'read'>) {
    this.#db = db;
    this.#reads = reads;
  }

  async create(key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null> {
    return this.#db.write((tx) => insert(tx, key));
  }

  async replace(key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null> {
    return this.#db.write(async (tx) => {
      await tx.run('DELETE FROM api_keys WHERE id = $1', key.id);
      return insert(tx, key);
    });
  }

  async byHash(hash: string): Promise<ApiKey | null> {
    const [row] = await this.#reads.read<KeyColumns>(
      `${SELECT_KEYS} WHERE hash = $1 AND revoked_at IS NULL`,
      hash,
    );
    return row ? toKey(row) : null;
  }

  async byId(id: string): Promise<ApiKey | null> {
    const [row] = await this.#reads.read<KeyColumns>(`${SELECT_KEYS} WHERE id = $1`, id);
    return row ? toKey(row) : null;
  }

  async hasSome(): Promise<boolean> {
    return (await this.#reads.read('SELECT 1 FROM api_keys WHERE revoked_at IS NULL LIMIT 1')).length > 0;
  }

  async list(): Promise<ApiKey[]> {
    return (await this.#reads.read<KeyColumns>(`${SELECT_KEYS} ORDER BY created_at DESC, id`)).map(toKey);
  }

  async revoke(id: string, now: number): Promise<ApiKey | null> {
    return this.#db.write(async (tx) => {
      await tx.run('UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1', id, now);
      const [row] = await tx.run<KeyColumns>(`${SELECT_KEYS} WHERE id = $1`, id);
      return row ? toKey(row) : null;
    });
  }

  async pagesUnderWay(id: string): Promise<number> {
    const [row] = await this.#reads.read<{ pages: number }>(selectUnderWay('$1'), id);
    return row!.pages;
  }

  async tasksOut(id: string): Promise<number> {
    const [row] = await this.#reads.read<{ tasks: number }>(selectTasksOut('$1'), id);
    return row!.tasks;
  }

  async usage(id: string, day: number): Promise<KeyUsage> {
    const [row] = await this.#reads.read<KeyUsage>(selectUsage('$1', '$2'), id, day);
    return toUsage(row);
  }

  async use(...[id, day, used, max]: Parameters<KeyStore['use']>): Promise<boolean> {
    const { pages, cost } = used;
    return this.#db.write(async (tx) => {
      return (await tx.run(USE, id, day, pages, cost, max.pages, max.cost)).length > 0;
    });
  }
}

async function insert(tx: Transaction, key: Omit<ApiKey, 'revokedAt'>): Promise<ApiKey | null> {
  const { id, name, hash, scope, limits, createdAt } = key;
  const [row] = await tx.run<KeyColumns>(
    INSERT_KEY,
    id,
    name,
    hash,
    scope,
    JSON.stringify(limits),
    createdAt,
  );
  return row ? toKey(row) : null;
}

const INSERT_KEY = `
  INSERT INTO api_keys (id, name, hash, scope, limits, created_at) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
  RETURNING id, name, hash, scope, limits, created_at, revoked_at`;

const USE = `
  INSERT INTO key_usage AS used (key_id, day, pages, cost)
  SELECT $1, $2::integer, $3::bigint, $4::double precision
  WHERE $3 <= coalesce($5::bigint, $3) AND $4 <= coalesce($6::double precision, $4)
  ON CONFLICT (key_id, day) DO UPDATE SET pages = used.pages + excluded.pages, cost = used.cost + excluded.cost
  WHERE used.pages + excluded.pages <= coalesce($5::bigint, used.pages + excluded.pages)
    AND used.cost + excluded.cost <= coalesce($6::double precision, used.cost + excluded.cost)
  RETURNING pages`;
