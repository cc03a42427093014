import type { BegunRequest, RequestStore } from '../../ports/store/request-store.ts';
import type { WebhookDatabase } from './webhooks/webhook-store.ts';

interface RequestColumns {
  id: string;
  payload: string | null;
  reply: string | null;
}

export class SharedRequestStore implements RequestStore {
  readonly #db: Pick<WebhookDatabase, 'run' | 'dialect'>;

  constructor(db: Pick<WebhookDatabase, 'run' | 'dialect'>) {
    this.#db = db;
  }

  async begin(
    key: string,
    { id, holder, now, until, forgetBefore }: Parameters<RequestStore['begin']>[1],
  ): Promise<BegunRequest> {
    await this.#db.run('DELETE FROM api_requests WHERE key = $1 AND created_at < $2', key, forgetBefore);
    const [begun] = await this.#db.run<{ id: string }>(BEGIN, key, id, holder, until, now);
    if (begun) return { kind: 'begun', id: begun.id };
    const [known] = await this.#db.run<RequestColumns>(SELECT, key);
    if (known?.reply == null || known.payload === null) return { kind: 'in-flight' };
    return { kind: 'answered', payload: known.payload, reply: known.reply };
  }

  async extend(keys: readonly string[], holder: string, until: number): Promise<void> {
    for (const key of keys)
      await this.#db.run(
        'UPDATE api_requests SET until = $3 WHERE key = $1 AND holder = $2 AND reply IS NULL',
        key,
        holder,
        until,
      );
  }

  async answer(key: string, holder: string, answered: { payload: string; reply: string }): Promise<void> {
    await this.#db.run(ANSWER, key, holder, answered.payload, answered.reply);
  }

  async release(key: string, holder: string): Promise<void> {
    await this.#db.run(
      'UPDATE api_requests SET until = 0 WHERE key = $1 AND holder = $2 AND reply IS NULL',
      key,
      holder,
    );
  }

  async releaseAll(): Promise<void> {
    await this.#db.run('UPDATE api_requests SET until = 0 WHERE reply IS NULL');
  }

  async forget(before: number, limit: number): Promise<number> {
    return (await this.#db.run(FORGET, before, limit)).length;
  }
}

const BEGIN = `
  INSERT INTO api_requests (key, id, holder, until, created_at) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, until = excluded.until
  WHERE api_requests.reply IS NULL AND api_requests.until <= excluded.created_at
  RETURNING id`;

const SELECT = 'SELECT id, payload, reply FROM api_requests WHERE key = $1';

const ANSWER = `
  UPDATE api_requests SET payload = $3, reply = $4 WHERE key = $1 AND holder = $2 AND reply IS NULL`;

const FORGET = `
  DELETE FROM api_requests WHERE key IN (
    SELECT key FROM api_requests WHERE created_at < $1 ORDER BY created_at LIMIT $2) RETURNING key`;
