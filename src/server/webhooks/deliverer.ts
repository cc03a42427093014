import { request } from 'undici';
import { messageOf } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { BoundedSet } from '../../core/lru.ts';
import { isLinkLocalAddress, isPublicAddress } from '../../core/url/address.ts';
import { nextTryAt, signMessage } from '../../core/webhooks/webhook.ts';
import { type GuardedConnections, openGuardedConnections } from '../../network/guarded-connections.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { DeliveryTry, LeasedDelivery, WebhookStore } from '../../ports/store/webhook-store.ts';

/** An answer has to be complete within this. */
const TRY_MS = 15_000;
/** Longer than a try takes: another server sends what a dead one had taken. */
const LEASE_MS = 60_000;
const LOOK_MS = 500;
const UNDER_WAY_MAX = 64;
/** So that an endpoint that does not answer leaves room for the others. */
const UNDER_WAY_PER_ENDPOINT = 8;
/** How long deliveries are kept in the log. */
const KEPT_MS = 30 * 24 * 3_600_000;
const FORGET_MS = 60_000;
const FORGOTTEN_AT_ONCE = 1_000;
const GONE = 410;
const TOLD_MAX = 1_000;

interface DelivererOptions {
  webhooks: WebhookStore;
  logger: Logger;
  /** Private addresses may be called; link-local ones never are. */
  allowPrivate: boolean;
  now?(): number;
}

/**
 * Sends what is in the outbox. Each delivery is leased, so that of several servers over one database one sends it. A
 * process that dies after it was sent and before that was noted sends it again, under the same id.
 */
export class WebhookDeliverer {
  readonly #options: DelivererOptions;
  readonly #connections: GuardedConnections;
  readonly #underWay = new Map<string, number>();
  readonly #tries = new Set<Promise<void>>();
  /** Endpoints whose trouble was told. */
  readonly #told = new BoundedSet<string>(TOLD_MAX);
  readonly #closing = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #wake: () => void = () => {};
  #forgottenAt = 0;

  constructor(options: DelivererOptions) {
    this.#options = options;
    this.#connections = openGuardedConnections({
      isAllowed: options.allowPrivate ? (ip) => !isLinkLocalAddress(ip) : isPublicAddress,
      refused: (hostname) =>
        new Error(
          `${hostname} has no address that may be called${options.allowPrivate ? '' : '; SEINE_WEBHOOKS_ALLOW_PRIVATE=true allows private ones'}`,
        ),
      connectMs: TRY_MS,
      limits: { headersTimeout: TRY_MS, bodyTimeout: TRY_MS },
    });
  }

  start(): void {
    this.#loop = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    await this.#loop;
    await Promise.all(this.#tries);
    await this.#connections.destroy();
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }

  async #run(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#look();
      } catch (error) {
        // The run of the server ends when its store fails; here the next look may succeed.
        this.#options.logger.warn(`cannot read the outbox of webhooks: ${messageOf(error)}`);
      }
      await this.#sleep();
    }
  }

  async #look(): Promise<void> {
    const { webhooks } = this.#options;
    const now = this.#now();
    if (now - this.#forgottenAt > FORGET_MS) {
      this.#forgottenAt = now;
      await webhooks.forget(now - KEPT_MS, FORGOTTEN_AT_ONCE);
    }
    const limit = UNDER_WAY_MAX - this.#tries.size;
    if (limit <= 0) return;
    const busy = [...this.#underWay].filter(([, count]) => count >= UNDER_WAY_PER_ENDPOINT);
    const except = busy.map(([id]) => id);
    for (const delivery of await webhooks.lease({ now, until: now + LEASE_MS, limit, except })) {
      const { endpointId } = delivery;
      const count = this.#underWay.get(endpointId) ?? 0;
      if (count >= UNDER_WAY_PER_ENDPOINT) {
        await webhooks.release(delivery.id, now);
        continue;
      }
      this.#underWay.set(endpointId, count + 1);
      const tried = this.#send(delivery).finally(() => {
        const left = this.#underWay.get(endpointId)! - 1;
        if (left > 0) this.#underWay.set(endpointId, left);
        else this.#underWay.delete(endpointId);
        this.#tries.delete(tried);
        this.#wake();
      });
      this.#tries.add(tried);
    }
  }

  async #send(delivery: LeasedDelivery): Promise<void> {
    const { webhooks, logger } = this.#options;
    const tried = await this.#try(delivery);
    try {
      const isDelivered = tried.status !== null && tried.status >= 200 && tried.status < 300;
      const isGone = tried.status === GONE;
      if (this.#closing.signal.aborted && !isDelivered) {
        // Cut off by our own end: not a try of theirs.
        await webhooks.release(delivery.id, this.#now());
        return;
      }
      const nextAt = isGone ? null : nextTryAt(delivery.tries + 1, this.#now(), Math.random());
      await webhooks.noteTry(delivery.id, tried, { isDelivered, nextAt });
      if (!isDelivered) this.#tell(delivery, tried);
      if (isGone) await webhooks.disable(delivery.endpointId, 'the endpoint answered 410 Gone', this.#now());
    } catch (error) {
      logger.warn(`cannot note the delivery of a webhook, it will be sent again: ${messageOf(error)}`);
    }
  }

  /** Callbacks are in no list, so only the log can say why they do not come. */
  #tell({ endpointId, url }: LeasedDelivery, { status, error }: DeliveryTry): void {
    if (this.#told.has(endpointId)) return;
    this.#told.add(endpointId);
    const reason = error ?? `status ${status}`;
    // Addresses may have secrets in their paths.
    this.#options.logger.warn(`a webhook is not delivered: ${reason}`, {
      endpoint: endpointId,
      host: URL.parse(url)?.host ?? '',
    });
  }

  async #try({ messageId, url, body, secrets }: LeasedDelivery): Promise<DeliveryTry> {
    const at = this.#now();
    const startedAt = performance.now();
    const timestamp = Math.floor(at / 1_000);
    const done = (status: number | null, error: string | null): DeliveryTry => {
      return { at, status, error, durationMs: Math.round(performance.now() - startedAt) };
    };
    try {
      // Redirects are not followed: their target was never checked, and a POST would become a GET.
      const answer = await request(url, {
        method: 'POST',
        dispatcher: this.#connections,
        signal: AbortSignal.any([AbortSignal.timeout(TRY_MS), this.#closing.signal]),
        headers: {
          'content-type': 'application/json',
          'user-agent': `Seine/${VERSION} webhooks`,
          'webhook-id': messageId,
          'webhook-timestamp': String(timestamp),
          'webhook-signature': signMessage(secrets, { id: messageId, timestamp, body }),
        },
        body,
      });
      // What it says is of no interest, and may be endless.
      answer.body.on('error', () => {});
      answer.body.destroy();
      const { statusCode: status } = answer;
      return done(status, status >= 300 && status < 400 ? 'redirects are not followed' : null);
    } catch (error) {
      const isLate = (error as Error).name === 'TimeoutError';
      return done(null, isLate ? `no answer within ${TRY_MS / 1_000} s` : messageOf(error));
    }
  }

  #sleep(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LOOK_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
