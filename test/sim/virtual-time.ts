import type { Clock } from '../../src/ports/ambient.ts';

/** Numbers that are the same for the same seed: mulberry32. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x5eed, 0x9e3779b1) | 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let value = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** In [from, to), whole. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.between(0, list.length)]!;
  }
}

/** Knows when a coordinator that looks again and again could see something. */
export interface Poller {
  nextPollAt(): number;
  /** It looks now. */
  onLook(): void;
}

interface Event {
  at: number;
  /** Decides among events of the same time. */
  order: number;
  /** Whose step it is: it is dropped when that process is dead, and waits while it is frozen. */
  process: Process | null;
  /** Of a poll, which may be late where it could see nothing. */
  poller: Poller | null;
  /** What is quiet, as the calls of a poll are, changes nothing by itself. */
  isQuiet: boolean;
  run: (() => void) | null;
}

/** A process of the simulated machines: what it does ends with it, and its clock is set when it starts. */
export class Process {
  readonly name: string;
  readonly world: World;
  /** What its clock shows beyond the time of the world. */
  readonly clockOffset: number;
  isAlive = true;
  frozenUntil = 0;

  constructor(world: World, name: string, clockOffset = world.wallOffset) {
    this.world = world;
    this.name = name;
    this.clockOffset = clockOffset;
  }

  /** Every one of its timers fires. */
  get clock(): Clock {
    return this.#clock(null);
  }

  /** Short timers are those of polls, and may be late. */
  pollingClock(poller: Poller): Clock {
    return this.#clock(poller);
  }

  #clock(poller: Poller | null): Clock {
    return {
      now: () => this.world.now + this.clockOffset,
      after: (ms, run) => this.world.after(ms, this, run, ms <= POLL_MS_MAX ? poller : null),
    };
  }

  kill(): void {
    this.isAlive = false;
  }

  /** Stands still for a while, as under SIGSTOP or on a machine that swaps. */
  freeze(ms: number): void {
    this.frozenUntil = Math.max(this.frozenUntil, this.world.now + ms);
  }
}

const POLL_MS_MAX = 250;
/** Steps that run before the event loop turns once: promises are settled after each of them all the same. */
const STEPS_PER_TURN = 64;
/** 2026-11-02T00:00:00Z, so that times are as long as real ones. */
const START = 1_793_577_600_000;

/** Virtual time: events run in the order of their times, and in a seeded order where the times are equal. */
export class World {
  readonly random: SeededRandom;
  now = START;
  /** Clocks of processes that start from now on are off by this. */
  wallOffset = 0;
  steps = 0;
  /** Steps that were neither polls nor quiet. */
  events = 0;
  /** After each step, when everything that follows from it has happened. */
  afterStep: () => void = () => {};
  readonly #heap: Event[] = [];

  constructor(random: SeededRandom) {
    this.random = random;
  }

  get elapsedMs(): number {
    return this.now - START;
  }

  after(
    ms: number,
    process: Process | null,
    run: () => void,
    poller: Poller | null = null,
    isQuiet = false,
  ): () => void {
    const at = this.now + Math.max(0, ms);
    const event: Event = { at, order: this.random.next(), process, poller, isQuiet, run };
    this.#push(event);
    return () => {
      event.run = null;
    };
  }

  /** For what changes nothing by itself. */
  quietlyAfter(ms: number, process: Process | null, run: () => void): void {
    this.after(ms, process, run, null, true);
  }

  /** Runs until nothing is left to do, or `isOver` says so. */
  run(isOver: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let isDone = false;
    const step = () => {
      if (isDone) return;
      try {
        // What the last step led to has happened by now.
        if (this.steps > 0) this.afterStep();
        if (isOver() || !this.#step()) {
          isDone = true;
          resolve();
        }
      } catch (error) {
        isDone = true;
        reject(error);
      }
    };
    const turn = () => {
      if (isDone) return;
      for (let count = 0; count < STEPS_PER_TURN; count++) setImmediate(step);
      setImmediate(turn);
    };
    turn();
    return promise;
  }

  #step(): boolean {
    while (true) {
      const event = this.#pop();
      if (!event) return false;
      const { process, run } = event;
      if (run === null || process?.isAlive === false) continue;
      if (process && process.frozenUntil > event.at) {
        event.at = process.frozenUntil;
        this.#push(event);
        continue;
      }
      if (this.#isPutOff(event)) continue;
      this.now = Math.max(this.now, event.at);
      this.steps++;
      if (event.poller) event.poller.onLook();
      else if (!event.isQuiet) this.events++;
      run();
      return true;
    }
  }

  /** A timer may be late: a poll that could see nothing waits, until there is something or something has happened. */
  #isPutOff(event: Event): boolean {
    const pollAt = event.poller?.nextPollAt() ?? event.at;
    if (pollAt <= event.at) return false;
    const happensAt = this.#heap[0]?.at ?? pollAt;
    event.at = Math.min(pollAt, Math.max(happensAt, event.at + POLL_MS_MAX));
    this.#push(event);
    return true;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let index = heap.length;
    heap.push(event);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!first || !last || heap.length === 0) return first;
    let index = 0;
    while (true) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at;
}
