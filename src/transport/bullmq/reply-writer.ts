import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Redis } from './bullmq-packages.ts';
import { REPLY_TTL_MS, type Reply, replyFields } from './wire.ts';

/** A Redis that is full may have room again soon; after that the lease of the batch has ended. */
const TRIES_MAX = 30;
const RETRY_MS = 1_000;

/** Puts replies into the streams of their coordinators: those of one batch in the order in which they are given. */
export class Replies {
  readonly #redis: Redis;
  readonly #logger: Logger;
  readonly #last = new Map<string, Promise<void>>();

  constructor(redis: Redis, logger: Logger) {
    this.#redis = redis;
    this.#logger = logger;
  }

  /** Resolves when Redis has it. */
  send(key: string, { kind, sentId }: Pick<Reply, 'kind' | 'sentId'>, body: Buffer): Promise<void> {
    const fields = replyFields(kind, sentId, body);
    const before = this.#last.get(sentId);
    const sent = before ? before.catch(() => {}).then(() => this.#add(key, fields)) : this.#add(key, fields);
    this.#last.set(sentId, sent);
    const forget = () => {
      if (this.#last.get(sentId) === sent) this.#last.delete(sentId);
    };
    sent.then(forget, forget);
    return sent;
  }

  async #add(key: string, fields: (string | Buffer)[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await Promise.all([this.#redis.xadd(key, '*', ...fields), this.#redis.pexpire(key, REPLY_TTL_MS)]);
        return;
      } catch (error) {
        if (tries === 1) this.#logger.warn(`cannot write a report to Redis, retrying: ${messageOf(error)}`);
        if (tries >= TRIES_MAX) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}
