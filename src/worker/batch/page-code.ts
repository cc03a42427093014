import { AsyncLocalStorage } from 'node:async_hooks';
import { messageOf } from '../../core/errors.ts';
import { describeCodeError } from '../job/error-place.ts';

/** Where others can see which page's code runs, even when the thread does nothing else any more. */
export interface CodeMarks {
  begin(batchId: number, taskId: number, leftMs: number): void;
  end(): void;
}

interface PageCodeOptions {
  batchId: number;
  taskId: number;
  /** What messages call it: `the handler of route 'product'`. */
  name: string;
  marks: CodeMarks | null;
  /** For an error that comes when the code has returned; false when the page was reported before. */
  onLateError(taskId: number, detail: string): boolean;
}

const running = new AsyncLocalStorage<PageCode>();

/**
 * The code of a job at work on one page. What it starts and does not wait for is still its own: an error there that
 * nothing catches is the error of this page, and the worker goes on.
 */
export class PageCode {
  readonly #options: PageCodeOptions;
  readonly #failed = Promise.withResolvers<never>();
  #hasReturned = false;

  constructor(options: PageCodeOptions) {
    this.#options = options;
    // It may fail while nothing waits for it.
    this.#failed.promise.catch(() => {});
  }

  get name(): string {
    return this.#options.name;
  }

  /** `leftMs`: the time that it has. A promise only when the code gave one. */
  run<T>(leftMs: number, code: () => T | Promise<T>): T | Promise<T> {
    let result: T | Promise<T> | null = null;
    try {
      result = this.#start(leftMs, code);
    } finally {
      this.#hasReturned = !(result instanceof Promise);
    }
    if (!(result instanceof Promise)) return result;
    return Promise.race([result, this.#failed.promise]).finally(() => {
      this.#hasReturned = true;
    });
  }

  /** False when the page was reported before. */
  fail(error: unknown): boolean {
    const { taskId, name, onLateError } = this.#options;
    const stray = new Error(`${name} started something without await, and that failed: ${messageOf(error)}`, {
      cause: error,
    });
    if (error instanceof Error) stray.stack = error.stack;
    if (this.#hasReturned) return onLateError(taskId, describeCodeError(stray));
    this.#failed.reject(stray);
    return true;
  }

  /** For a process that ends now: this page was the last to run. */
  mark(): void {
    const { marks, batchId, taskId } = this.#options;
    marks?.begin(batchId, taskId, 0);
  }

  #start<T>(leftMs: number, code: () => T): T {
    const { marks, batchId, taskId } = this.#options;
    marks?.begin(batchId, taskId, leftMs);
    try {
      return running.run(this, code);
    } finally {
      marks?.end();
    }
  }
}

/**
 * Gives errors that nothing catches to the page whose code made them. Only for processes and threads that are workers and
 * nothing else. Errors of no page end the worker, as they would without this.
 */
export function watchStrayErrors(onLate: (message: string) => void): void {
  const take = (error: unknown) => {
    const code = running.getStore();
    if (!code) {
      process.removeListener('uncaughtException', take);
      process.removeListener('unhandledRejection', take);
      setImmediate(() => {
        throw error;
      });
      return;
    }
    if (!code.fail(error))
      onLate(
        `${code.name} failed after its page was reported, where nothing awaits it: ${describeCodeError(error)}`,
      );
  };
  process.on('uncaughtException', take);
  process.on('unhandledRejection', take);
  process.on('exit', () => running.getStore()?.mark());
}
