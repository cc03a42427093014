import { checkpointEntry, type HostLogRow, type LogSums, textOf } from './host-log.ts';

/**
 * Checkpoints: how the log of a host is kept from growing for ever, and stays a chain.
 *
 * Checkpoint   an entry like all others, with the sums of all entries before it, from the first on, and the hash of the last
 *              of them. It is written long before anything is cut.
 * Cut          once a checkpoint is old enough, the entries before it are deleted. The log then begins with it.
 */

/** Entries between two checkpoints, at least: half a megabyte, or what a busy host is asked in two hours. */
export const CHECKPOINT_ENTRIES = 1_000;
/** Entries that are looked at, at a time. */
export const CHECKPOINT_STEP = 1_000;
/** Steps of one look: a log that is much too long is cut by and by. */
export const CUT_STEPS_MAX = 20;

/** What is looked at of an entry. */
export interface LoggedText {
  number: number;
  text: string;
}

type Summed = Pick<HostLogRow, 'kind' | 'at' | 'permit' | 'requests' | 'refusals' | 'before'>;

/** Adds what one entry says. */
export function addToSums(
  sums: Omit<LogSums, 'hash'>,
  { kind, at, permit, requests, refusals }: Summed,
): Omit<LogSums, 'hash'> {
  return {
    entries: sums.entries + 1,
    firstAt: sums.firstAt ?? at,
    lost: sums.lost + (kind === 'lost' ? 1 : 0),
    permits: sums.permits + (permit ? 1 : 0),
    refusals: sums.refusals + (refusals ?? 0),
    requests: sums.requests + (requests ?? 0),
  };
}

export const NO_SUMS: Omit<LogSums, 'hash'> = {
  ...{ entries: 0, firstAt: null, lost: 0, permits: 0, refusals: 0, requests: 0 },
};

/** Gathers entries from the last one back to the newest checkpoint, or to the first entry. */
export class EntriesBack {
  readonly #since: Summed[] = [];
  #checkpoint: Summed | null = null;

  /** In descending order. True when no more are needed. */
  add(entries: readonly LoggedText[]): boolean {
    for (const { text } of entries) {
      const entry: Summed = JSON.parse(text);
      if (entry.kind === 'checkpoint') this.#checkpoint = entry;
      this.#since.push(entry);
      if (this.#checkpoint) return true;
    }
    return entries.length < CHECKPOINT_STEP;
  }

  /** The text of a checkpoint after them, or null when it is too soon for one. `last`: the hash of the last entry. */
  checkpoint(about: { host: string; last: string; now: number; entries: number }): string | null {
    const { host, last, now, entries } = about;
    const count = this.#since.length - (this.#checkpoint ? 1 : 0);
    if (count < entries) return null;
    const { hash: _, ...before } = this.#checkpoint?.before ?? { ...NO_SUMS, hash: '' };
    const sums = this.#since.toReversed().reduce(addToSums, before);
    return textOf(checkpointEntry({ now, host, before: { ...sums, hash: last } }));
  }
}

/** Looks for the newest checkpoint that is older than `before`, from the first entry on. */
export class CutSearch {
  readonly #before: number;
  /** Entries before this one are cut; null when none are. */
  number: number | null = null;

  constructor(before: number) {
    this.#before = before;
  }

  /** In ascending order. True when no more need to be looked at. */
  add(entries: readonly LoggedText[]): boolean {
    for (const { number, text } of entries) {
      const { kind, at }: Summed = JSON.parse(text);
      if (Date.parse(at) >= this.#before) return true;
      if (kind === 'checkpoint') this.number = number;
    }
    return entries.length < CHECKPOINT_STEP;
  }
}
