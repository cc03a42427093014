import { randomBytes } from 'node:crypto';
import type { Clock, Logger, Random } from '../ports/ambient.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { Job, Store } from '../ports/store.ts';
import { type EscalationPolicy, openEscalationPolicy } from './escalation/escalation-policy.ts';
import { HostGroups } from './hosts/host-groups.ts';
import { OpenPermits } from './hosts/open-permits.ts';
import type { OpenBatch } from './plan/open-batch.ts';
import { AccessAssigner } from './proxies/access-assigner.ts';
import type { JobAccess } from './proxies/job-access.ts';
import type { Progress } from './reports/progress.ts';
import type { RobotsCache } from './robots/robots-cache.ts';
import { GivenUp } from './settle/giving-up.ts';
import type { SourceFeeder } from './sources/source-feeder.ts';

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
  /** For jobs with proxies or a remote scraping API. */
  access?: JobAccess | null;
  /** What rates are counted by; by names alone when absent. */
  groups?: HostGroups;
  /** Free bytes where the job writes; null when not known. */
  diskFree(): Promise<number | null>;
}

/** Longer than any honest delay of an answer: after that a batch is taken back. */
export const LEASE_GRACE_MS = 30_000;

const STORAGE_PAUSE_MS = 1_000;
const STORAGE_PAUSE_MS_MAX = 60_000;

/** What is under way: the only state that a coordinator keeps in memory, and may lose. */
export class RunState {
  readonly options: CoordinatorOptions;
  readonly robots: RobotsCache;
  /** Null when every request goes the plain way. */
  readonly escalation: EscalationPolicy | null;
  /** Null when the job has no proxies and no remote scraping API. */
  readonly access: AccessAssigner | null;
  readonly groups: HostGroups;
  readonly givenUp = new GivenUp();
  readonly permits = new OpenPermits();
  readonly open = new Map<number, OpenBatch>();
  readonly wake = new Wake();
  failedBatchesInRow = 0;
  /** Reports in a row whose pages could not be stored, and what the last said. */
  storageTroublesInRow = 0;
  storageTrouble: string | null = null;
  /** Nothing is sent out before: storage has to come back first. */
  pausedUntil = 0;
  readonly #epochBase = randomBytes(6).toString('hex');
  #epoch = 0;

  constructor(options: CoordinatorOptions, robots: RobotsCache) {
    this.options = options;
    this.robots = robots;
    const { job, random } = options;
    this.groups = options.groups ?? new HostGroups(options);
    this.access = options.access ? new AccessAssigner(options.access, options) : null;
    this.escalation = openEscalationPolicy(job.spec, job.name, () => random.next());
  }

  get epoch(): string {
    return `${this.#epochBase}.${this.#epoch}`;
  }

  /** A report was lost or refused: workers must report its links again. */
  beginEpoch(): void {
    this.#epoch++;
  }

  /** Fetching what cannot be kept would only burden the sites: wait, longer each time. */
  onStorage(trouble: string | null): void {
    this.storageTrouble = trouble;
    if (trouble === null) {
      this.storageTroublesInRow = 0;
      return;
    }
    // Batches that were out together fail together: they count once.
    if (this.now() < this.pausedUntil) return;
    this.storageTroublesInRow++;
    const pauseMs = Math.min(STORAGE_PAUSE_MS_MAX, STORAGE_PAUSE_MS * 2 ** (this.storageTroublesInRow - 1));
    this.pausedUntil = this.now() + pauseMs;
    this.options.logger.warn(`${trouble}; waiting ${Math.round(pauseMs / 1_000)} s`);
  }

  now(): number {
    return this.options.clock.now();
  }
}

/** Lets a loop sleep until something happens or a time comes. */
class Wake {
  #resolve: (() => void) | null = null;
  #pending = false;

  notify(): void {
    this.#pending = true;
    this.#resolve?.();
  }

  /** At once when something has happened since the last wait. */
  async wait(ms: number): Promise<void> {
    if (!this.#pending) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#resolve = null;
    }
    this.#pending = false;
  }
}
