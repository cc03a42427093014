import type { AlertKind } from '../../core/alerts/alerts.ts';
import type { AlertRow, AlertSilence, AlertStore } from '../../ports/store/alert-store.ts';
import type { WebhookDatabase } from './webhooks/webhook-store.ts';

interface AlertColumns {
  id: number;
  kind: AlertKind;
  subject: string;
  text: string;
  fired_at: number;
  resolved_at: number | null;
}

export class SharedAlertStore implements AlertStore {
  readonly #db: Pick<WebhookDatabase, 'run'>;

  constructor(db: Pick<WebhookDatabase, 'run'>) {
    this.#db = db;
  }

  async fire({ kind, subject, text, now }: Parameters<AlertStore['fire']>[0]): Promise<number | null> {
    const [row] = await this.#db.run<{ id: number }>(FIRE, kind, subject, text, now);
    return row?.id ?? null;
  }

  async resolve(kind: AlertKind, subject: string, now: number): Promise<boolean> {
    return (await this.#db.run(RESOLVE, kind, subject, now)).length > 0;
  }

  async firing(): Promise<AlertRow[]> {
    const rows = await this.#db.run<AlertColumns>(`${SELECT} WHERE resolved_at IS NULL ORDER BY id`);
    return rows.map(toAlert);
  }

  async list({ before, limit }: { before: number; limit: number }): Promise<AlertRow[]> {
    const rows = await this.#db.run<AlertColumns>(
      `${SELECT} WHERE id < $1 ORDER BY id DESC LIMIT $2`,
      before,
      limit,
    );
    return rows.map(toAlert);
  }

  async silence({ kind, subject, until }: AlertSilence): Promise<void> {
    await this.#db.run(SILENCE, kind ?? ANY, subject ?? ANY, until);
  }

  async silences(now: number): Promise<AlertSilence[]> {
    const rows = await this.#db.run<{ kind: string; subject: string; until: number }>(
      'SELECT kind, subject, until FROM alert_silences WHERE until > $1 ORDER BY kind, subject',
      now,
    );
    return rows.map(({ kind, subject, until }) => ({
      kind: kind === ANY ? null : (kind as AlertKind),
      subject: subject === ANY ? null : subject,
      until,
    }));
  }

  async forget(before: number): Promise<void> {
    await this.#db.run('DELETE FROM alerts WHERE resolved_at < $1', before);
    await this.#db.run('DELETE FROM alert_silences WHERE until < $1', before);
  }
}

function toAlert(row: AlertColumns): AlertRow {
  const { id, kind, subject, text } = row;
  return { id, kind, subject, text, firedAt: row.fired_at, resolvedAt: row.resolved_at };
}

/** No job has this name. */
const ANY = '*';

const SELECT = 'SELECT id, kind, subject, text, fired_at, resolved_at FROM alerts';

const FIRE = `
  INSERT INTO alerts (kind, subject, text, fired_at) VALUES ($1, $2, $3, $4)
  ON CONFLICT (kind, subject) WHERE resolved_at IS NULL DO NOTHING RETURNING id`;

const RESOLVE = `
  UPDATE alerts SET resolved_at = $3 WHERE kind = $1 AND subject = $2 AND resolved_at IS NULL RETURNING id`;

const SILENCE = `
  INSERT INTO alert_silences (kind, subject, until) VALUES ($1, $2, $3)
  ON CONFLICT (kind, subject) DO UPDATE SET until = excluded.until`;
