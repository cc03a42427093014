import { randomBytes } from 'node:crypto';
import type { Clock, Logger, Random } from '../ports/ambient.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { Job, Store } from '../ports/store.ts';
import { type ApproachBook, openApproachBook } from './approach-book.ts';
import type { OpenBatch } from './open-batch.ts';
import { PermitBook } from './permit-book.ts';
import type { Progress } from './progress.ts';
import type { RobotsBook } from './robots-book.ts';
import type { SourceFeeder } from './seeds.ts';
import { Wake } from './wake.ts';

export interface CoordinatorOptions {
  store: Store;
  blobs: Blobs;
  dispatcher: Dispatcher;
  job: Job;
  feeder: SourceFeeder;
  progress: Progress;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Free bytes where the job writes; null when not known. */
  diskFree(): Promise<number | null>;
}

/** Longer than any honest delay of an answer: after that a batch is taken back. */
export const LEASE_GRACE_MS = 30_000;

/** What is under way: the only state that a coordinator keeps in memory, and may lose. */
export class Flight {
  readonly options: CoordinatorOptions;
  readonly robots: RobotsBook;
  /** Null when every request goes the plain way. */
  readonly approaches: ApproachBook | null;
  readonly permits = new PermitBook();
  readonly open = new Map<number, OpenBatch>();
  readonly wake = new Wake();
  failedBatchesInRow = 0;
  readonly #epochBase = randomBytes(6).toString('hex');
  #epoch = 0;

  constructor(options: CoordinatorOptions, robots: RobotsBook) {
    this.options = options;
    this.robots = robots;
    const { job, random } = options;
    this.approaches = openApproachBook(job.spec, job.name, () => random.next());
  }

  get epoch(): string {
    return `${this.#epochBase}.${this.#epoch}`;
  }

  /** A report was lost or refused: workers must report its links again. */
  beginEpoch(): void {
    this.#epoch++;
  }

  now(): number {
    return this.options.clock.now();
  }
}
