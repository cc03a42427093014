import { KeyedSemaphore } from '../../network/keyed-semaphore.ts';

/** For as long a picture waits for the one before; then it is taken all the same, as that one may never come. */
const WAIT_MS = 5_000;

/**
 * Takes the pictures of one browser, one at a time. While a page of 10,000 dots is drawn and packed, there are several
 * bitmaps of 50 MB. A second picture that is drawn while the first is packed took 80 MB more, and with four tabs on two
 * cores no page came sooner: other tabs load meanwhile.
 */
export class ScreenshotQueue {
  readonly #semaphore = new KeyedSemaphore();
  readonly #waitMs: number;

  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  async take<T>(capture: () => Promise<T>): Promise<T> {
    const leave = await this.#semaphore.enter('', 1, AbortSignal.timeout(this.#waitMs));
    try {
      return await capture();
    } finally {
      leave();
    }
  }
}
