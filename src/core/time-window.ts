import { SeineError } from './errors.ts';
import type { HostRule } from './job.ts';

type TimeWindow = NonNullable<HostRule['window']>;

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
/** Clocks are put forward and back by a quarter of an hour at the least, somewhere. */
const STEP_MINUTES = 15;

/** Hours of the day in a time zone. `from` equal to `to` is the whole day. */
export class CompiledWindow {
  readonly #from: number;
  readonly #to: number;
  readonly #format: Intl.DateTimeFormat;

  constructor({ from, to, timeZone }: TimeWindow) {
    this.#from = minutesOf(from);
    this.#to = minutesOf(to);
    try {
      this.#format = new Intl.DateTimeFormat('en-GB', {
        timeZone,
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
      });
    } catch {
      throw new SeineError(`unknown time zone '${timeZone}'`, { hint: 'use a name such as Europe/Paris' });
    }
  }

  isOpen(at: number): boolean {
    const now = minutesOf(this.#format.format(at));
    if (this.#from === this.#to) return true;
    return this.#from < this.#to ? now >= this.#from && now < this.#to : now >= this.#from || now < this.#to;
  }

  /** `at` itself when it is open then; otherwise when it next opens. */
  opensAt(at: number): number {
    if (this.isOpen(at)) return at;
    const now = minutesOf(this.#format.format(at));
    const wait = (this.#from - now + DAY_MINUTES) % DAY_MINUTES;
    let opens = (Math.floor(at / MINUTE_MS) + wait) * MINUTE_MS;
    // On days on which the clocks change it may be later by as much as they move.
    while (!this.isOpen(opens)) opens += STEP_MINUTES * MINUTE_MS;
    return opens;
  }
}

function minutesOf(time: string): number {
  const [hours = '0', minutes = '0'] = time.split(':');
  return Number(hours) * 60 + Number(minutes);
}
