import type { CallbackReceiver } from './callback-receiver.ts';

/** News of one list of URLs: an API may send one for all of them, or one for each of its jobs. */
export class CallbackInbox {
  readonly url: string;
  readonly #end: () => void;
  readonly #idOf: (value: unknown) => string | null;
  /** Messages that are believed, at most: a few for each URL. */
  #left: number;
  /** What came before the answer to the list said which jobs there are. */
  #early: unknown[] = [];
  #jobs: { id: string | null; take(value: unknown): void }[] | null = null;

  constructor(receiver: CallbackReceiver, urls: number, idOf: (value: unknown) => string | null) {
    this.#idOf = idOf;
    this.#left = urls * 3;
    const { url, end } = receiver.expect((value) => this.#receive(value));
    this.url = url;
    this.#end = end;
  }

  /** From now on messages are given to their jobs. */
  open(jobs: { id: string | null; take(value: unknown): void }[]): void {
    this.#jobs = jobs;
    for (const value of this.#early.splice(0)) this.#give(value);
  }

  close(): void {
    this.#end();
    this.#early = [];
    this.#jobs = [];
  }

  #receive(value: unknown): boolean {
    if (this.#left-- <= 0) return false;
    if (this.#jobs !== null) return this.#give(value);
    // Pages are large: only one for each job is worth its memory, and there is mostly one job.
    if (this.#early.length > 0 && this.#early.length >= this.#left) return false;
    this.#early.push(value);
    return true;
  }

  #give(value: unknown): boolean {
    const id = this.#idOf(value);
    const jobs = this.#jobs ?? [];
    const job =
      jobs.find((each) => each.id !== null && each.id === id) ?? (isAlone(jobs, id) ? jobs[0] : null);
    job?.take(value);
    return job !== null && job !== undefined;
  }
}

/** One job need not be named. */
function isAlone(jobs: readonly { id: string | null }[], id: string | null): boolean {
  return jobs.length === 1 && (id === null || jobs[0]!.id === null);
}

/** A value that is waited for, or not for longer than so long. */
export class Mailbox {
  #values: unknown[] = [];
  #wake: (() => void) | null = null;

  take(value: unknown): void {
    this.#values.push(value);
    this.#wake?.();
  }

  /** Null when nothing came in time. Rejects when the signal fires. */
  async next(ms: number, signal: AbortSignal): Promise<{ value: unknown } | null> {
    signal.throwIfAborted();
    if (this.#values.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => done(), ms);
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          this.#wake = null;
          resolve();
        };
        this.#wake = done;
        signal.addEventListener('abort', done);
      });
      signal.throwIfAborted();
    }
    return this.#values.length === 0 ? null : { value: this.#values.shift() };
  }
}
