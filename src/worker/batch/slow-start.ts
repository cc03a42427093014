import { parallelAfter } from '../../core/bans/bans.ts';
import { type Clock, startTimer } from '../../ports/ambient.ts';

/** A page that does not answer must not hold up all others: after this time without any there is one more request. */
const WAIT_MS = 2_000;

/** Lets the parallel requests of a permit begin one after the other, as the host answers. */
export class SlowStart {
  readonly #clock: Clock;
  #answers: number;
  /** Requests that began without an answer. */
  #extra = 0;
  #isOver = false;
  /** In the order of their indexes. */
  readonly #waiting: { index: number; admit: () => void }[] = [];
  #cancel: (() => void) | null = null;

  constructor(answers: number, clock: Clock) {
    this.#answers = answers;
    this.#clock = clock;
  }

  /** Resolves when the request with this index, from 0 on, may begin. */
  async admission(index: number): Promise<void> {
    if (index < this.#most) return;
    await new Promise<void>((admit) => {
      this.#waiting.push({ index, admit });
      this.#watch();
    });
  }

  onAnswer(): void {
    this.#answers++;
    this.#admit();
  }

  /** Nothing is left to be sent. */
  end(): void {
    this.#isOver = true;
    this.#admit();
  }

  get #most(): number {
    return this.#isOver ? Number.POSITIVE_INFINITY : parallelAfter(this.#answers) + this.#extra;
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#waiting[0]!.index < this.#most) this.#waiting.shift()!.admit();
    this.#cancel?.();
    this.#cancel = null;
    this.#watch();
  }

  #watch(): void {
    if (this.#waiting.length === 0) return;
    this.#cancel ??= startTimer(this.#clock, WAIT_MS, () => {
      this.#cancel = null;
      this.#extra++;
      this.#admit();
    });
  }
}
