import type { Database } from '../../src/store/sqlite/connection/database.ts';
import type { Poller, Process } from './virtual-time.ts';

/** As far ahead of their time hosts are planned. */
const LOOK_AHEAD_MS = 400;
/** Hosts that are due, and that the last look left alone, are looked at again after this time. */
const LEFT_ALONE_MS = 2_000;
/** So are things that the store does not know of (what is saved, late pages), while anything happens. */
const STIRRING_MS = 5_000;
/** By then a coordinator has said what something new means for when it sends again. */
const SAID_MS = 12_000;
/** Not even a world in which nothing is due may stand still. */
const IDLE_MS_MAX = 600_000;

/** Calls of the store after which nothing is due that was not before. */
const READS: ReadonlySet<string> = new Set([
  ...['counters', 'dueHosts', 'nextDueAt', 'nextDue', 'priorities', 'requestedState', 'expired'],
  ...['abandoned', 'orphans', 'robots', 'sources', 'takeSources', 'hostsNamed', 'hasArchive'],
  ...['update', 'add', 'save', 'noteSent'],
]);

/** Counts what may have made tasks due, for all coordinators of a run. */
export class StoreChanges {
  count = 0;

  onCall(name: string): void {
    if (!READS.has(name)) this.count++;
  }
}

interface PollerParts {
  db: Database;
  jobId: number;
  process: Process;
  changes: StoreChanges;
  /** When the coordinator sends again, where it says that it does not before. */
  probeAt: () => number;
  /** When something changes without any call. */
  nextChangeAt: () => number;
}

/**
 * A coordinator looks four times a second whether something is due. Nearly all of these looks see nothing new, and they
 * would be most of what a run costs: those are left out, as if the timer were late.
 */
export class IdlePolls implements Poller {
  readonly #parts: PollerParts;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Changes and events that the last look could see. */
  #changesSeen = -1;
  #eventsSeen = -1;
  /** When a look last saw something new. */
  #newsAt = Number.NEGATIVE_INFINITY;
  /** What the store says, as of so many changes and the last look. */
  #due = { asOf: -1, lookedAt: 0, firstAt: 0, nextAt: 0 };

  constructor(parts: PollerParts) {
    this.#parts = parts;
  }

  onLook(): void {
    const { world } = this.#parts.process;
    const { count } = this.#parts.changes;
    this.#lookedAt = world.now;
    if (count !== this.#changesSeen || world.events !== this.#eventsSeen) this.#newsAt = world.now;
    this.#changesSeen = count;
    this.#eventsSeen = world.events;
  }

  nextPollAt(): number {
    const { process, nextChangeAt } = this.#parts;
    const { firstAt, nextAt } = this.#dueTimes();
    const isNew = this.#lookedAt - this.#newsAt < SAID_MS;
    const isStirring = isNew || process.world.events !== this.#eventsSeen;
    const waitMs = firstAt <= this.#lookedAt ? LEFT_ALONE_MS : isStirring ? STIRRING_MS : IDLE_MS_MAX;
    return Math.min(nextAt, nextChangeAt(), this.#lookedAt + waitMs);
  }

  /** When the first thing is due, and when the first that the last look could not see. */
  #dueTimes(): { firstAt: number; nextAt: number } {
    const { count } = this.#parts.changes;
    const since = count === this.#changesSeen ? this.#lookedAt : Number.NEGATIVE_INFINITY;
    if (this.#due.asOf !== count || this.#due.lookedAt !== this.#lookedAt) {
      const firstAt = this.#dueAfter(Number.NEGATIVE_INFINITY);
      const nextAt = firstAt > since ? firstAt : this.#dueAfter(since);
      this.#due = { asOf: count, lookedAt: this.#lookedAt, firstAt, nextAt };
    }
    const probeAt = this.#parts.probeAt();
    const { firstAt, nextAt } = this.#due;
    if (probeAt > since) return { firstAt: Math.max(firstAt, probeAt), nextAt: Math.max(firstAt, probeAt) };
    return { firstAt, nextAt };
  }

  #dueAfter(since: number): number {
    const { db, jobId, process } = this.#parts;
    const after = since + process.clockOffset;
    const row = db.get<{ host: number | null; task: number | null; lease: number | null }>(
      SELECT_NEXT,
      ...[jobId, Math.max(0, after + LOOK_AHEAD_MS), jobId, Math.max(0, after), jobId, Math.max(0, after)],
    )!;
    const times = [
      (row.host ?? Number.POSITIVE_INFINITY) - LOOK_AHEAD_MS,
      row.task ?? Number.POSITIVE_INFINITY,
      (row.lease ?? Number.POSITIVE_INFINITY) + 1,
    ];
    return Math.min(...times) - process.clockOffset;
  }
}

/** A coordinator that waits for another to end its reading of the sources asks less often than it would. */
export class SourcePolls implements Poller {
  readonly #process: Process;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(process: Process) {
    this.#process = process;
  }

  onLook(): void {
    this.#lookedAt = this.#process.world.now;
  }

  nextPollAt(): number {
    return this.#lookedAt + STIRRING_MS;
  }
}

const SELECT_NEXT = `
  SELECT (SELECT min(next_at) FROM queues WHERE job_id = ? AND ready > 0 AND next_at > ?) AS host,
    (SELECT min(due_at) FROM tasks WHERE job_id = ? AND state = 8 AND due_at > ?) AS task,
    (SELECT min(lease_until) FROM batches WHERE job_id = ? AND state = 'open' AND lease_until > ?) AS lease`;
