import { KeyedSemaphore } from '../../network/keyed-semaphore.ts';

/** In one browser: one is drawn while the other is packed. */
export const SHOTS_AT_ONCE_MAX = 2;

/** For as long a picture waits for others; then it is taken all the same, as one of them may never come. */
const WAIT_MS = 5_000;
/** The next picture is begun when the one before has had this share of the usual time. */
const DRAWN_SHARE = 0.85;
/** How much the newest picture says about the usual time. */
const NEWEST_SHARE = 0.2;

/**
 * Takes the pictures of one browser. While a page of 10,000 dots is drawn, there are several bitmaps of 50 MB, and one
 * thread draws them all; while it is made a PNG afterwards, there is one, and another thread is busy. So one picture is
 * drawn at a time, while the one before is packed. Chromium does not tell when drawing ends and packing begins: this
 * is guessed from how long pictures have taken so far.
 */
export class ScreenshotPipeline {
  readonly #semaphore = new KeyedSemaphore();
  readonly #waitMs: number;
  #usualMs: number | null = null;

  constructor(waitMs = WAIT_MS) {
    this.#waitMs = waitMs;
  }

  async take<T>(capture: () => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(this.#waitMs);
    const leave = await this.#semaphore.enter('taken', SHOTS_AT_ONCE_MAX, signal);
    try {
      return await this.#take(capture, await this.#semaphore.enter('drawn', 1, signal));
    } finally {
      leave();
    }
  }

  async #take<T>(capture: () => Promise<T>, leave: () => void): Promise<T> {
    const startedAt = performance.now();
    let isDrawn = false;
    const endDrawing = () => {
      if (!isDrawn) leave();
      isDrawn = true;
    };
    const timer = this.#usualMs === null ? null : setTimeout(endDrawing, this.#usualMs * DRAWN_SHARE);
    try {
      const picture = await capture();
      const ms = performance.now() - startedAt;
      this.#usualMs = this.#usualMs === null ? ms : this.#usualMs + (ms - this.#usualMs) * NEWEST_SHARE;
      return picture;
    } finally {
      if (timer) clearTimeout(timer);
      endDrawing();
    }
  }
}
