import { randomBytes, randomUUID } from 'node:crypto';
import type { Report } from '../../core/batch/batch.ts';
import { messageOf, StorageFullError } from '../../core/errors.ts';
import { withSince } from '../../core/text/since.ts';
import type { Clock, Logger } from '../../ports/ambient.ts';
import type { Blobs } from '../../ports/blobs.ts';

interface StorageOptions {
  clock: Clock;
  logger: Pick<Logger, 'warn'>;
  blobs: Pick<Blobs, 'put' | 'delete'>;
  /** Free bytes where the job writes; null when not known. */
  diskFree(): Promise<number | null>;
  /** With less than this, nothing is fetched. */
  diskFreeBytes: number;
}

const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 60_000;
/** A blob is tried again this often at least while there is no room: that costs no request. */
const PROBE_MS_MAX = 10_000;
/** More than one batch usually stores, so that the next one does not fail as well. */
const PROBE_BYTES = 8 * 1024 * 1024;

/**
 * Fetching what cannot be stored would only burden the sites.
 *
 * | state | what is sent | ends |
 * |---|---|---|
 * | works | everything | when a report says that something could not be stored |
 * | fails | nothing | when, after a pause, a blob of the coordinator's own can be stored |
 * | tried | one batch at a time | with its last report: it works, or fails and the next pause is longer |
 *
 * In every state nothing is sent while the disk has less than `limits.diskFreeBytes` left.
 */
export class StoragePause {
  readonly #options: StorageOptions;
  #state: 'works' | 'fails' | 'tried' = 'works';
  #trouble: string | null = null;
  /** Of those that no room explains. */
  #troublesInRow = 0;
  #pauses = 0;
  #probeAt = 0;
  #since = 0;
  #lowDisk: string | null = null;
  #lowSince = 0;
  #probeBytes: Buffer | null = null;

  constructor(options: StorageOptions) {
    this.#options = options;
  }

  get isOn(): boolean {
    return this.#state === 'fails' || this.#lowDisk !== null;
  }

  /** Batches that may be out at once. */
  get batchesMax(): number {
    if (this.isOn) return 0;
    return this.#state === 'tried' ? 1 : Number.POSITIVE_INFINITY;
  }

  /** Why nothing is fetched, and since when; null while everything is. */
  get reason(): string | null {
    const now = this.#options.clock.now();
    if (this.#lowDisk !== null) return withSince(this.#lowDisk, now - this.#lowSince);
    return this.#trouble === null ? null : withSince(this.#trouble, now - this.#since);
  }

  /** Lack of room does not count: that is waited for, however long it takes. */
  get troublesInRow(): number {
    return this.#troublesInRow;
  }

  onReport({ trouble, storageFull, final }: Pick<Report, 'trouble' | 'storageFull' | 'final'>): void {
    if (trouble) {
      // Batches that were out together fail together: they count once.
      if (this.#state === 'fails') return;
      this.#fail(trouble, { isFull: storageFull === true, pauseMsMax: PAUSE_MS_MAX });
    } else if (final && this.#state === 'tried') this.#work();
  }

  /** Looks whether there is room again. */
  async look(): Promise<void> {
    await this.#lookAtDisk();
    const { clock } = this.#options;
    if (this.#state !== 'fails' || clock.now() < this.#probeAt) return;
    const failure = await this.#probe();
    if (failure === null) this.#state = 'tried';
    else {
      const isFull = failure instanceof StorageFullError;
      this.#fail(`cannot store a blob: ${messageOf(failure)}`, {
        isFull,
        pauseMsMax: isFull ? PROBE_MS_MAX : PAUSE_MS_MAX,
      });
    }
  }

  /** Waits, longer each time. */
  #fail(trouble: string, { isFull, pauseMsMax }: { isFull: boolean; pauseMsMax: number }): void {
    const { clock, logger } = this.#options;
    if (this.#state === 'works') this.#since = clock.now();
    const pauseMs = Math.min(pauseMsMax, PAUSE_MS * 2 ** this.#pauses++);
    this.#probeAt = clock.now() + pauseMs;
    if (!isFull) {
      this.#troublesInRow++;
      logger.warn(`${trouble}; waiting ${Math.round(pauseMs / 1_000)} s`);
    } else if (this.#state === 'works') logger.warn(`${trouble}; waiting until there is room`);
    this.#state = 'fails';
    this.#trouble = trouble;
  }

  #work(): void {
    const { clock, logger } = this.#options;
    const seconds = Math.round((clock.now() - this.#since) / 1_000);
    logger.warn(`results can be stored again, after ${seconds} s`);
    this.#state = 'works';
    this.#trouble = null;
    this.#probeBytes = null;
    this.#troublesInRow = 0;
    this.#pauses = 0;
  }

  async #lookAtDisk(): Promise<void> {
    const { clock, diskFree, diskFreeBytes, logger } = this.#options;
    const free = await diskFree();
    const isLow = free !== null && free < diskFreeBytes;
    if (isLow && this.#lowDisk === null) {
      this.#lowSince = clock.now();
      this.#lowDisk = `only ${free} bytes free on the disk, less than limits.diskFreeBytes (${diskFreeBytes})`;
      logger.warn(`${this.#lowDisk}; waiting until there is room`);
    } else if (!isLow && this.#lowDisk !== null) {
      this.#lowDisk = null;
      logger.warn('there is room on the disk again');
    }
  }

  async #probe(): Promise<unknown> {
    const { blobs } = this.#options;
    const key = `probe/${randomUUID()}`;
    try {
      // Random, because some file systems store nothing for zeros.
      this.#probeBytes ??= Buffer.alloc(PROBE_BYTES, randomBytes(4_096));
      await blobs.put(key, this.#probeBytes);
      await blobs.delete(key);
      return null;
    } catch (error) {
      return error;
    }
  }
}
