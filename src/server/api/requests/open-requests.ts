import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Caller } from './access.ts';
import { Problem } from './problems.ts';

/** One that is refused must not keep its connection, of which there are not many more. */
const RETRY_AFTER = { headers: { 'retry-after': '10', connection: 'close' } };

interface Limits {
  /** What they are, in the plural. */
  what: string;
  max: number;
  /** Of one key: the others need some, too. */
  keyMax: number;
}

/** Counts requests that are under way, of all kinds or of one that stays open for long. */
export class OpenRequests {
  readonly #limits: Limits;
  readonly #byKey = new Map<string, number>();
  #open = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Throws a problem when there are too many. What it returns is called when the request is not open any more. */
  take({ keyId }: Caller): () => void {
    const { what, max, keyMax } = this.#limits;
    const own = keyId === null ? 0 : (this.#byKey.get(keyId) ?? 0);
    if (own >= keyMax) throw new Problem('too-many-open', `the key has ${own} ${what} open`, RETRY_AFTER);
    if (this.#open >= max) throw new Problem('busy', `too many ${what} are open`, RETRY_AFTER);
    this.#open++;
    if (keyId !== null) this.#byKey.set(keyId, own + 1);
    let isOpen = true;
    return () => {
      if (isOpen) this.#release(keyId);
      isOpen = false;
    };
  }

  /** A stream, which is open until its client is gone; the signal fires then. */
  takeStream(caller: Caller, reply: FastifyReply): AbortController {
    const release = this.take(caller);
    const gone = new AbortController();
    reply.raw.once('close', () => {
      release();
      gone.abort();
    });
    return gone;
  }

  #release(keyId: string | null): void {
    this.#open--;
    if (keyId === null) return;
    const left = this.#byKey.get(keyId)! - 1;
    if (left > 0) this.#byKey.set(keyId, left);
    else this.#byKey.delete(keyId);
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `countRequests`. */
    release: (() => void) | null;
  }
}

/**
 * Counts every request until it is answered. One whose client goes away counts until its work is done: or a client could have
 * any number of them done at once.
 */
export function countRequests(app: FastifyInstance, requests: OpenRequests): void {
  app.decorateRequest('release', null);
  app.addHook('onRequest', async (request, reply) => {
    const release = requests.take(request.caller);
    let isAnswered = false;
    request.release = () => {
      isAnswered = true;
      if (reply.raw.destroyed) release();
    };
    reply.raw.once('finish', release).once('close', () => {
      if (isAnswered) release();
    });
  });
  app.addHook('onSend', async (request) => request.release?.());
}
