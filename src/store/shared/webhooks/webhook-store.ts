import {
  type WebhookEvent,
  type WebhookMessage,
  wantsRunningEvents,
} from '../../../core/webhooks/webhook.ts';
import type {
  DeliveryTry,
  LeasedDelivery,
  WebhookDelivery,
  WebhookEndpoint,
  WebhookSecret,
  WebhookStore,
} from '../../../ports/store/webhook-store.ts';
import type { ReadValue } from '../views/reader.ts';
import { type Outbox, type OutboxDialect, ownerColumn, tellOwners } from './outbox.ts';

/** How a store runs what is written here for both of them. */
export interface WebhookDatabase {
  readonly dialect: OutboxDialect & {
    /** Texts of the JSON list in `$4`. */
    textsOf4: string;
    /** After a SELECT of rows to be changed: those that another process is changing are left out. */
    skipLocked: string;
  };
  /** One statement, as PostgreSQL reads it: one transaction. */
  run<T>(text: string, ...values: ReadValue[]): Promise<T[]>;
  /** All of them in one transaction. */
  write(make: () => Outbox): Promise<void>;
}

interface EndpointColumns {
  id: string;
  owner: string;
  job_id: number | null;
  url: string;
  events: string;
  metadata: string | null;
  created_at: number;
  disabled_at: number | null;
  disabled_reason: string | null;
}

interface SecretColumns {
  secret: string;
  former: string | null;
  former_until: number | null;
}

interface DeliveryColumns {
  id: number;
  message_id: string;
  endpoint_id: string;
  type: WebhookEvent;
  job_id: number | null;
  body: string;
  created_at: number;
  next_at: number | null;
  state: WebhookDelivery['state'];
  log: string;
}

/** Tries that are kept of a delivery: those of a schedule, and some by hand. */
const TRIES_KEPT = 20;

export class SharedWebhookStore implements WebhookStore {
  readonly #db: WebhookDatabase;

  constructor(db: WebhookDatabase) {
    this.#db = db;
  }

  async create(endpoint: Parameters<WebhookStore['create']>[0], secret: string | null): Promise<void> {
    const { id, owner, jobId, url, events, metadata, createdAt } = endpoint;
    const wanted = [JSON.stringify(events), wantsRunningEvents(events) ? 1 : 0, toMetadata(metadata)];
    await this.#db.run(INSERT_ENDPOINT, id, ownerColumn(owner), jobId, url, ...wanted, secret, createdAt);
  }

  async get(id: string): Promise<WebhookEndpoint | null> {
    const [row] = await this.#db.run<EndpointColumns>(`${SELECT_ENDPOINTS} WHERE id = $1`, id);
    return row ? toEndpoint(row) : null;
  }

  async list({ owner, limit }: Parameters<WebhookStore['list']>[0]): Promise<WebhookEndpoint[]> {
    const rows =
      owner === undefined
        ? await this.#db.run<EndpointColumns>(LIST_ALL, limit)
        : await this.#db.run<EndpointColumns>(LIST_OWN, limit, ownerColumn(owner));
    return rows.map(toEndpoint);
  }

  async update(id: string, { url, events, metadata }: Parameters<WebhookStore['update']>[1]): Promise<void> {
    const wanted = [JSON.stringify(events), wantsRunningEvents(events) ? 1 : 0, toMetadata(metadata)];
    await this.#db.run(UPDATE_ENDPOINT, id, url, ...wanted);
  }

  async disable(id: string, reason: string | null, now: number): Promise<void> {
    await this.#db.run(
      'UPDATE webhook_endpoints SET disabled_at = $2, disabled_reason = $3 WHERE id = $1',
      id,
      reason === null ? null : now,
      reason,
    );
  }

  async remove(id: string): Promise<void> {
    await this.#db.run('DELETE FROM webhook_endpoints WHERE id = $1', id);
    await this.#db.run('DELETE FROM webhook_deliveries WHERE endpoint_id = $1', id);
  }

  async ownerSecret(owner: string | null, fresh: string): Promise<WebhookSecret> {
    await this.#db.run(INSERT_SECRET, ownerColumn(owner), fresh);
    const [row] = await this.#db.run<SecretColumns>(SELECT_SECRET, ownerColumn(owner));
    const { secret, former, former_until: until } = row!;
    return { secret, former: former === null ? null : { secret: former, until: until! } };
  }

  async rotateOwner(owner: string | null, fresh: string, formerUntil: number): Promise<void> {
    await this.#db.run(INSERT_SECRET, ownerColumn(owner), fresh);
    await this.#db.run(ROTATE_SECRET, ownerColumn(owner), fresh, formerUntil);
  }

  async rotate(id: string, fresh: string, formerUntil: number): Promise<void> {
    await this.#db.run(ROTATE_ENDPOINT, id, fresh, formerUntil);
  }

  async tell(message: WebhookMessage, to: { owner?: string | null; now: number }): Promise<void> {
    await this.#db.write(() => tellOwners(this.#db.dialect, message, to));
  }

  async lease({
    now,
    until,
    limit,
    except,
  }: Parameters<WebhookStore['lease']>[0]): Promise<LeasedDelivery[]> {
    const text = leaseDeliveries(this.#db.dialect);
    const taken = await this.#db.run<{ id: number }>(text, now, until, limit, JSON.stringify(except));
    const leased: LeasedDelivery[] = [];
    for (const { id } of taken) {
      const [row] = await this.#db.run<DeliveryColumns & SecretColumns & { url: string; tries: number }>(
        SELECT_LEASED,
        id,
      );
      // Its endpoint was deleted meanwhile.
      if (!row) continue;
      const { message_id: messageId, endpoint_id: endpointId, url, body, tries, secret, former } = row;
      const secrets = former !== null && row.former_until! > now ? [secret, former] : [secret];
      leased.push({ id, messageId, endpointId, url, body, tries, secrets });
    }
    return leased;
  }

  async release(id: number, now: number): Promise<void> {
    await this.#db.run(
      "UPDATE webhook_deliveries SET next_at = $2 WHERE id = $1 AND state = 'pending'",
      id,
      now,
    );
  }

  async noteTry(...[id, tried, result]: Parameters<WebhookStore['noteTry']>): Promise<void> {
    const [row] = await this.#db.run<{ log: string }>('SELECT log FROM webhook_deliveries WHERE id = $1', id);
    if (!row) return;
    const log: DeliveryTry[] = [...JSON.parse(row.log), tried].slice(-TRIES_KEPT);
    const state = result.isDelivered ? 'delivered' : result.nextAt === null ? 'failed' : 'pending';
    const nextAt = result.isDelivered ? null : result.nextAt;
    await this.#db.run(NOTE_TRY, id, JSON.stringify(log), state, nextAt);
  }

  async deliveries(
    endpointId: string,
    { before, limit }: { before: number | null; limit: number },
  ): Promise<WebhookDelivery[]> {
    const last = before ?? Number.MAX_SAFE_INTEGER;
    return (await this.#db.run<DeliveryColumns>(LIST_DELIVERIES, endpointId, last, limit)).map(toDelivery);
  }

  async delivery(id: number): Promise<WebhookDelivery | null> {
    const [row] = await this.#db.run<DeliveryColumns>(`${SELECT_DELIVERIES} WHERE id = $1`, id);
    return row ? toDelivery(row) : null;
  }

  async redeliver(id: number, now: number): Promise<boolean> {
    return (await this.#db.run(REDELIVER, id, now)).length > 0;
  }

  async nextAt(): Promise<number | null> {
    const [row] = await this.#db.run<{ at: number | null }>(
      'SELECT min(next_at) AS at FROM webhook_deliveries WHERE next_at IS NOT NULL',
    );
    return row?.at ?? null;
  }

  async forget(before: number, limit: number): Promise<number> {
    const gone = await this.#db.run(FORGET_DELIVERIES, before, limit);
    if (gone.length > 0 || limit > 0) await this.#db.run(FORGET_CALLBACKS, before, limit);
    return gone.length;
  }
}

function toMetadata(metadata: unknown): string | null {
  return metadata == null ? null : JSON.stringify(metadata);
}

function toEndpoint(row: EndpointColumns): WebhookEndpoint {
  return {
    id: row.id,
    owner: row.owner === '' ? null : row.owner,
    jobId: row.job_id,
    url: row.url,
    events: JSON.parse(row.events),
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    createdAt: row.created_at,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
  };
}

function toDelivery(row: DeliveryColumns): WebhookDelivery {
  return {
    id: row.id,
    messageId: row.message_id,
    endpointId: row.endpoint_id,
    type: row.type,
    jobId: row.job_id,
    body: row.body,
    createdAt: row.created_at,
    state: row.state,
    tries: JSON.parse(row.log),
    nextAt: row.next_at,
  };
}

const SELECT_ENDPOINTS = `
  SELECT id, owner, job_id, url, events, metadata, created_at, disabled_at, disabled_reason FROM webhook_endpoints`;
const LIST_ALL = `${SELECT_ENDPOINTS} WHERE job_id IS NULL ORDER BY created_at DESC, id LIMIT $1`;
const LIST_OWN = `${SELECT_ENDPOINTS} WHERE job_id IS NULL AND owner = $2 ORDER BY created_at DESC, id LIMIT $1`;

/** Callbacks come again when a request is repeated. */
const INSERT_ENDPOINT = `
  INSERT INTO webhook_endpoints (id, owner, job_id, url, events, wants_work, metadata, secret, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`;

const UPDATE_ENDPOINT = `
  UPDATE webhook_endpoints SET url = $2, events = $3, wants_work = $4, metadata = $5 WHERE id = $1`;

const INSERT_SECRET = `
  INSERT INTO webhook_secrets (owner, secret) VALUES ($1, $2) ON CONFLICT (owner) DO NOTHING`;
const SELECT_SECRET = 'SELECT secret, former, former_until FROM webhook_secrets WHERE owner = $1';
/** The same twice changes nothing more. */
const ROTATE_SECRET = `
  UPDATE webhook_secrets SET former = secret, former_until = $3, secret = $2 WHERE owner = $1 AND secret <> $2`;
const ROTATE_ENDPOINT = `
  UPDATE webhook_endpoints SET former = secret, former_until = $3, secret = $2
  WHERE id = $1 AND secret IS NOT NULL AND secret <> $2`;

const leaseDeliveries = ({ textsOf4, skipLocked }: WebhookDatabase['dialect']) => `
  UPDATE webhook_deliveries SET next_at = $2 WHERE id IN (
    SELECT deliveries.id FROM webhook_deliveries AS deliveries
    WHERE deliveries.next_at <= $1 AND deliveries.endpoint_id NOT IN (${textsOf4})
      AND EXISTS (SELECT 1 FROM webhook_endpoints WHERE webhook_endpoints.id = deliveries.endpoint_id
        AND webhook_endpoints.disabled_at IS NULL)
    ORDER BY deliveries.next_at, deliveries.id LIMIT $3 ${skipLocked})
  RETURNING id`;

/** The secret of the endpoint, or of its owner. */
const SELECT_LEASED = `
  SELECT deliveries.message_id, deliveries.endpoint_id, deliveries.body, deliveries.tries, endpoints.url,
    coalesce(endpoints.secret, owners.secret) AS secret,
    CASE WHEN endpoints.secret IS NULL THEN owners.former ELSE endpoints.former END AS former,
    CASE WHEN endpoints.secret IS NULL THEN owners.former_until ELSE endpoints.former_until END AS former_until
  FROM webhook_deliveries AS deliveries JOIN webhook_endpoints AS endpoints ON endpoints.id = deliveries.endpoint_id
    LEFT JOIN webhook_secrets AS owners ON owners.owner = endpoints.owner
  WHERE deliveries.id = $1`;

const NOTE_TRY = `
  UPDATE webhook_deliveries SET log = $2, state = $3, next_at = $4, tries = tries + 1 WHERE id = $1`;

const SELECT_DELIVERIES = `
  SELECT id, message_id, endpoint_id, type, job_id, body, created_at, next_at, state, log FROM webhook_deliveries`;
const LIST_DELIVERIES = `${SELECT_DELIVERIES} WHERE endpoint_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3`;

const REDELIVER = `
  UPDATE webhook_deliveries SET state = 'pending', next_at = $2, tries = 0 WHERE id = $1 RETURNING id`;

const FORGET_DELIVERIES = `
  DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE next_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2)
  RETURNING id`;
const FORGET_CALLBACKS = `
  DELETE FROM webhook_endpoints WHERE id IN (
    SELECT id FROM webhook_endpoints WHERE job_id IS NOT NULL AND created_at < $1
      AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE endpoint_id = webhook_endpoints.id)
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = webhook_endpoints.job_id AND jobs.state = 'running')
    ORDER BY created_at LIMIT $2)`;
