import { type ArenaHost, type HostAnswer, type Random, randomOf } from './hosts.ts';

const LATENESS_SEED = 1;

/** Requests on virtual time: each arrives a little later than it was sent, and its answer comes after the host's latency. */
export class Network {
  now = 0;
  requests = 0;
  answered = 0;
  /** Refused by the limiter of the host, or its ban. */
  refusals = 0;
  readonly #host: ArenaHost;
  readonly #random: Random;
  readonly #lateness = randomOf(LATENESS_SEED);
  readonly #events = new EventQueue();
  #underWay = 0;

  constructor(host: ArenaHost, random: Random) {
    this.#host = host;
    this.#random = random;
  }

  get limitNow(): number {
    return this.#host.limitAt(this.now);
  }

  /** How late a timer fires: up to two milliseconds, and now and then more, because the machine is busy. */
  lateMs(): number {
    return this.#lateness() * (this.#lateness() < 0.01 ? 30 : 2);
  }

  send(onAnswer: (answer: HostAnswer, sentAt: number) => void): void {
    const sentAt = this.now;
    this.requests++;
    this.#underWay++;
    this.#events.add(this.now + this.#random() * 8, () => {
      const answer = this.#host.take(this.now, this.#underWay);
      if (answer.byLimiter) this.refusals++;
      if (answer.kind === 'answered') this.answered++;
      this.#events.add(this.now + answer.latencyMs, () => {
        this.#underWay--;
        onAnswer(answer, sentAt);
      });
    });
  }

  /** Runs what happens until a time, or until the first answer. */
  runUntil(at: number, stopsAtAnswer: boolean): void {
    while (this.#events.size > 0 && this.#events.firstAt <= at) {
      this.now = this.#events.firstAt;
      const before = this.#underWay;
      this.#events.takeFirst()();
      if (stopsAtAnswer && this.#underWay < before) return;
    }
    if (Number.isFinite(at)) this.now = Math.max(this.now, at);
  }
}

/** A binary heap by time. */
class EventQueue {
  readonly #times: number[] = [];
  readonly #actions: (() => void)[] = [];

  get size(): number {
    return this.#times.length;
  }

  get firstAt(): number {
    return this.#times[0]!;
  }

  add(at: number, action: () => void): void {
    let index = this.#times.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#times[parent]! <= at) break;
      this.#times[index] = this.#times[parent]!;
      this.#actions[index] = this.#actions[parent]!;
      index = parent;
    }
    this.#times[index] = at;
    this.#actions[index] = action;
  }

  takeFirst(): () => void {
    const first = this.#actions[0]!;
    const at = this.#times.pop()!;
    const action = this.#actions.pop()!;
    const size = this.#times.length;
    if (size === 0) return first;
    let index = 0;
    while (true) {
      let child = 2 * index + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#times[child + 1]! < this.#times[child]!) child++;
      if (this.#times[child]! >= at) break;
      this.#times[index] = this.#times[child]!;
      this.#actions[index] = this.#actions[child]!;
      index = child;
    }
    this.#times[index] = at;
    this.#actions[index] = action;
    return first;
  }
}
