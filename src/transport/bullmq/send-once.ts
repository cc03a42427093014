import type { Redis } from './bullmq-packages.ts';

/**
 * Sends what must not arrive twice. The ordinary connections send once more whatever was under way when they broke; this
 * one is given up instead with all that was under way, and the next command makes a new one.
 */
export class OnceSender {
  readonly #client: Redis;
  #own: Redis | null = null;

  /** `client` says where Redis is. */
  constructor(client: Redis) {
    this.#client = client;
  }

  /** Rejects when there was no answer, also if the command may have arrived. */
  async set(key: string, value: Buffer, ttlMs: number): Promise<void> {
    this.#own ??= this.#connect();
    await this.#own.set(key, value, 'PX', ttlMs);
  }

  close(): void {
    this.#own?.disconnect();
  }

  #connect(): Redis {
    const own = this.#client.duplicate({ retryStrategy: () => null, lazyConnect: false });
    // Each command tells of it.
    own.on('error', () => {});
    own.on('end', () => {
      if (this.#own === own) this.#own = null;
    });
    return own;
  }
}
