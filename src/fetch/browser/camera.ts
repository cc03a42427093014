import { LIMITS } from '../../core/limits.ts';
import { Turnstile } from '../turnstile.ts';

/** For as long a picture waits for others; then it is taken all the same, as one of them may never come. */
const WAIT_MS = 5_000;

/**
 * Takes the pictures of one browser, few at a time. A page of 10,000 dots is a bitmap of 50 MB in several processes,
 * and one thread draws them all, which two keep busy.
 */
export class Camera {
  readonly #turnstile = new Turnstile();
  readonly #waitMs: number;

  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  async take<T>(capture: () => Promise<T>): Promise<T> {
    const leave = await this.#turnstile.enter('', LIMITS.shotsAtOnceMax, AbortSignal.timeout(this.#waitMs));
    try {
      return await capture();
    } finally {
      leave();
    }
  }
}
