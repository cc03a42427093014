import type { FastifyReply } from 'fastify';
import type { Caller } from './access.ts';
import { Problem } from './problems.ts';

/** Of all streams of a kind, one key may have so many: the others need some, too. */
const SHARE_OF_KEY = 4;
/** One that is refused must not keep its connection, of which there are not many more. */
const RETRY_AFTER = { headers: { 'retry-after': '10', connection: 'close' } };

/** Counts connections that stay open while events are sent. */
export class OpenStreams {
  readonly #what: string;
  readonly #max: number;
  readonly #byKey = new Map<string, number>();
  #open = 0;

  constructor(what: string, max: number) {
    this.#what = what;
    this.#max = max;
  }

  /** Throws a problem when there are too many; the signal fires when the client is gone. */
  open({ keyId }: Caller, reply: FastifyReply): AbortController {
    const own = keyId === null ? 0 : (this.#byKey.get(keyId) ?? 0);
    if (this.#open >= this.#max || own >= this.#max / SHARE_OF_KEY)
      throw new Problem('busy', `too many streams of ${this.#what}`, RETRY_AFTER);
    this.#open++;
    if (keyId !== null) this.#byKey.set(keyId, own + 1);
    const gone = new AbortController();
    reply.raw.once('close', () => {
      this.#open--;
      if (keyId !== null) this.#close(keyId);
      gone.abort();
    });
    return gone;
  }

  #close(keyId: string): void {
    const left = this.#byKey.get(keyId)! - 1;
    if (left > 0) this.#byKey.set(keyId, left);
    else this.#byKey.delete(keyId);
  }
}
