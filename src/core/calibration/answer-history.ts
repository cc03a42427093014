import { BoundedMap } from '../lru.ts';

/** Twice the longest window that a host is taken to count over. */
const HISTORY_SECONDS = 7_200;

/** How many answers there were in each second of the last two hours. */
export class AnswerHistory {
  readonly #seconds = new BoundedMap<number, number>(HISTORY_SECONDS);

  add(at: number): void {
    const second = Math.floor(at / 1_000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
  }

  between(from: number, to: number): number {
    let sum = 0;
    for (let second = Math.floor(from / 1_000); second < to / 1_000; second++) {
      const count = this.#seconds.get(second);
      if (count === undefined) continue;
      // Of the first and the last second, the part that is inside.
      const share = Math.min(to, (second + 1) * 1_000) - Math.max(from, second * 1_000);
      sum += (count * Math.max(0, share)) / 1_000;
    }
    return sum;
  }
}
