import type { WebhookEvent, WebhookMessage } from '../../core/webhooks/webhook.ts';

export interface WebhookEndpoint {
  id: string;
  /** Id of the API key that it belongs to; null for the owner of the folder. */
  owner: string | null;
  /** The job whose callback it is; null when it is told of all jobs of its owner. */
  jobId: number | null;
  url: string;
  events: readonly WebhookEvent[];
  /** Goes into each message. */
  metadata: unknown;
  createdAt: number;
  /** Since when nothing is sent any more, and why. */
  disabledAt: number | null;
  disabledReason: string | null;
}

/** Signs messages. The former one also does until its time is over. */
export interface WebhookSecret {
  secret: string;
  former: { secret: string; until: number } | null;
}

export interface DeliveryTry {
  at: number;
  /** Null when no answer came. */
  status: number | null;
  error: string | null;
  durationMs: number;
}

export interface WebhookDelivery {
  id: number;
  /** The same over all tries. */
  messageId: string;
  endpointId: string;
  type: WebhookEvent;
  jobId: number | null;
  body: string;
  createdAt: number;
  state: 'pending' | 'delivered' | 'failed';
  tries: readonly DeliveryTry[];
  /** When it is sent next; null when it will not be. */
  nextAt: number | null;
}

/** A delivery that this process may send now. */
export interface LeasedDelivery {
  id: number;
  messageId: string;
  endpointId: string;
  url: string;
  body: string;
  /** Since it was written, or sent again by hand. */
  tries: number;
  secrets: readonly string[];
}

export interface WebhookStore {
  /** Null secret: the one of its owner signs. */
  create(
    endpoint: Omit<WebhookEndpoint, 'disabledAt' | 'disabledReason'>,
    secret: string | null,
  ): Promise<void>;
  get(id: string): Promise<WebhookEndpoint | null>;
  /** The newest first, without callbacks of jobs; of all owners when `owner` is absent. */
  list(filter: { owner?: string | null; limit: number }): Promise<WebhookEndpoint[]>;
  update(
    id: string,
    change: { url: string; events: readonly WebhookEvent[]; metadata: unknown },
  ): Promise<void>;
  /** Null reason: it is told again. */
  disable(id: string, reason: string | null, now: number): Promise<void>;
  remove(id: string): Promise<void>;
  /** The secret that signs callbacks of an owner; `fresh` becomes it when there is none yet. */
  ownerSecret(owner: string | null, fresh: string): Promise<WebhookSecret>;
  rotateOwner(owner: string | null, fresh: string, formerUntil: number): Promise<void>;
  rotate(id: string, fresh: string, formerUntil: number): Promise<void>;
  /** Writes a message for all endpoints that want it, of one owner or of all. */
  tell(message: WebhookMessage, to: { owner?: string | null; now: number }): Promise<void>;
  /** Takes deliveries that are due, the longest waiting first, so that no other process sends them before `until`. */
  lease(options: {
    now: number;
    until: number;
    limit: number;
    /** Endpoints that have enough under way. */
    except: readonly string[];
  }): Promise<LeasedDelivery[]>;
  /** Puts one back that was not sent after all. */
  release(id: number, now: number): Promise<void>;
  /** Notes a try. Null `nextAt`: there is no further one. */
  noteTry(
    id: number,
    tried: DeliveryTry,
    result: { isDelivered: boolean; nextAt: number | null },
  ): Promise<void>;
  /** The newest first, from the one before `before` on. */
  deliveries(
    endpointId: string,
    options: { before: number | null; limit: number },
  ): Promise<WebhookDelivery[]>;
  delivery(id: number): Promise<WebhookDelivery | null>;
  /** Sends it again from the first try on, under the same id. */
  redeliver(id: number, now: number): Promise<boolean>;
  /** When the next delivery is due; null when none is. */
  nextAt(): Promise<number | null>;
  /** Deletes deliveries from before, with callbacks of jobs that have none left; at most `limit`. */
  forget(before: number, limit: number): Promise<number>;
}
