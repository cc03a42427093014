import type { Database } from '../connection/database.ts';
import { cleanText } from '../connection/rows.ts';

const HOSTS_REMEMBERED_MAX = 100_000;

/** Numbers of hosts. They are made outside of transactions, so what is remembered is always true. */
export class HostIds {
  readonly #db: Database;
  #ids = new Map<string, number>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Makes sure that `of` knows them. */
  async learn(hosts: Iterable<string>): Promise<HostNumbers> {
    const wanted = new Set([...hosts].map(cleanText));
    const unknown = [...wanted].filter((host) => !this.#ids.has(host));
    if (this.#ids.size + unknown.length > HOSTS_REMEMBERED_MAX) {
      this.#ids = new Map();
      unknown.splice(0, unknown.length, ...wanted);
    }
    if (unknown.length > 0) {
      await this.#db.read(INSERT_HOSTS, unknown);
      const rows = await this.#db.read<{ id: number; host: string }>(SELECT_HOSTS, unknown);
      for (const { id, host } of rows) this.#ids.set(host, id);
    }
    const ids = this.#ids;
    return {
      find: (host) => ids.get(cleanText(host)),
      of(host) {
        const id = ids.get(cleanText(host));
        if (id === undefined) throw new Error(`no number for the host ${host}`);
        return id;
      },
    };
  }
}

export interface HostNumbers {
  find(host: string): number | undefined;
  of(host: string): number;
}

const INSERT_HOSTS = `
  INSERT INTO hosts (host) SELECT name FROM unnest($1::text[]) AS wanted (name)
  WHERE NOT EXISTS (SELECT 1 FROM hosts WHERE hosts.host = wanted.name)
  ORDER BY name ON CONFLICT (host) DO NOTHING`;

const SELECT_HOSTS = 'SELECT id, host FROM hosts WHERE host = ANY($1::text[])';
