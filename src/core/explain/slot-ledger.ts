import { addTimes, type IdleReason, type SlotTimes, sumOf, type WorkerTimes } from './slot-states.ts';

/** What has become of the time of all slots since the start. Each field only grows. */
export interface SlotSums {
  wallMs: number;
  /** Slots × time. */
  slotMs: number;
  /** Of slots that had a batch, by state. */
  busy: SlotTimes;
  /** Of free slots, by what stopped the next task. */
  idle: SlotTimes;
  /** Wall time when no slot was free. */
  fullMs: number;
  /** Wall time when slots were free, by what stopped the next task. */
  waits: SlotTimes;
  /** Tasks that were requested. */
  pages: number;
  /** Wall time in which at least one report was being written down. */
  writingMs: number;
  /** Reports that freed their slots. */
  writes: number;
}

export function noSums(): SlotSums {
  return {
    wallMs: 0,
    slotMs: 0,
    busy: {},
    idle: {},
    fullMs: 0,
    waits: {},
    pages: 0,
    writingMs: 0,
    writes: 0,
  };
}

export function addSums(into: SlotSums, sums: SlotSums, factor = 1): void {
  into.wallMs += sums.wallMs * factor;
  into.slotMs += sums.slotMs * factor;
  into.fullMs += sums.fullMs * factor;
  into.pages += sums.pages * factor;
  into.writingMs += sums.writingMs * factor;
  into.writes += sums.writes * factor;
  addTimes(into.busy, sums.busy, factor);
  addTimes(into.idle, sums.idle, factor);
  addTimes(into.waits, sums.waits, factor);
}

export function copySums(sums: SlotSums): SlotSums {
  const copy = noSums();
  addSums(copy, sums);
  return copy;
}

interface OpenSlot {
  openedAt: number;
  /** How much of its time is in a state already. */
  accountedMs: number;
  /** When its last report came; null while it works. */
  receivedAt: number | null;
  /** By its worker's clock; null until a report came. */
  startedAt: number | null;
}

/**
 * Accounts for every slot-second. At each moment, with what open batches have not told yet:
 * slotMs = sum of all states + unaccounted.
 */
export class SlotLedger {
  readonly #sums = noSums();
  readonly #open = new Map<number, OpenSlot>();
  #slots: number;
  #at: number;
  #reason: IdleReason = 'source';
  /** Reports that are being written down. */
  #writing = 0;
  #shortestWriteMs = Number.POSITIVE_INFINITY;

  constructor(now: number, slots: number) {
    this.#at = now;
    this.#slots = slots;
  }

  /** All time up to now is accounted for by what held until now. */
  advance(now: number): void {
    const ms = now - this.#at;
    if (!(ms > 0)) return;
    this.#at = now;
    const sums = this.#sums;
    // More can be open than there are slots: other jobs have got theirs back.
    const free = Math.max(0, this.#slots - this.#open.size);
    sums.wallMs += ms;
    sums.slotMs += ms * Math.max(this.#slots, this.#open.size);
    if (this.#writing > 0) sums.writingMs += ms;
    if (free === 0) sums.fullMs += ms;
    else {
      sums.idle[this.#reason] = (sums.idle[this.#reason] ?? 0) + ms * free;
      sums.waits[this.#reason] = (sums.waits[this.#reason] ?? 0) + ms;
    }
  }

  setSlots(slots: number, now: number): void {
    this.advance(now);
    this.#slots = slots;
  }

  /** Why free slots are free, from now on. */
  setReason(reason: IdleReason, now: number): void {
    this.advance(now);
    this.#reason = reason;
  }

  get reason(): IdleReason {
    return this.#reason;
  }

  /** The time since the last `advance` was of another reason than expected: free slots waited for this one. */
  advanceAs(reason: IdleReason, now: number): void {
    const before = this.#reason;
    this.#reason = reason;
    this.advance(now);
    this.#reason = before;
  }

  open(batchId: number, now: number): void {
    // One that is sent again, by whoever took it over.
    this.close(batchId, now);
    this.advance(now);
    this.#open.set(batchId, { openedAt: now, accountedMs: 0, receivedAt: null, startedAt: null });
  }

  /** A part of a report, with what its worker did since the part before. */
  report(
    batchId: number,
    report: { times: WorkerTimes; startedAt: number; pages: number; final: boolean },
    now: number,
  ): void {
    this.#sums.pages += report.pages;
    const slot = this.#open.get(batchId);
    if (!slot || slot.receivedAt !== null) return;
    this.advance(now);
    slot.startedAt ??= report.startedAt;
    this.#account(slot, report.times, now - slot.openedAt - slot.accountedMs);
    if (!report.final) return;
    slot.receivedAt = now;
    this.#writing++;
  }

  /** The slot is free again: its last report is written down, or its worker is lost. */
  close(batchId: number, now: number): void {
    const slot = this.#open.get(batchId);
    if (!slot) return;
    this.advance(now);
    this.#open.delete(batchId);
    const receivedAt = slot.receivedAt ?? now;
    if (slot.receivedAt !== null) {
      this.#writing--;
      this.#sums.writes++;
      this.#shortestWriteMs = Math.min(this.#shortestWriteMs, now - receivedAt);
    }
    this.#account(slot, { store: now - receivedAt }, now - receivedAt);
    const leftMs = now - slot.openedAt - slot.accountedMs;
    // The worker's clock may be another one.
    const startMs = slot.startedAt === null ? 0 : slot.startedAt - slot.openedAt;
    const coldStart = Math.min(leftMs, Math.max(0, startMs));
    this.#account(slot, { coldStart, report: leftMs - coldStart }, leftMs);
  }

  /** Never more than there was: a worker's clock may run fast. */
  #account(slot: OpenSlot, times: SlotTimes, mostMs: number): void {
    const sum = sumOf(times);
    if (sum <= 0 || mostMs <= 0) return;
    const factor = Math.min(1, mostMs / sum);
    addTimes(this.#sums.busy, times, factor);
    slot.accountedMs += sum * factor;
  }

  /** Time of open batches that no report has told of. */
  get unaccountedMs(): number {
    let ms = 0;
    for (const { openedAt, accountedMs } of this.#open.values()) ms += this.#at - openedAt - accountedMs;
    return ms;
  }

  /** What writing a report takes when it need not wait for others; null while none was written. */
  get shortestWriteMs(): number | null {
    return Number.isFinite(this.#shortestWriteMs) ? this.#shortestWriteMs : null;
  }

  sums(now: number): SlotSums {
    this.advance(now);
    return copySums(this.#sums);
  }
}

/** Slot-milliseconds by state, busy and idle. */
export function statesOf({ busy, idle }: Pick<SlotSums, 'busy' | 'idle'>): SlotTimes {
  const all: SlotTimes = {};
  addTimes(all, busy);
  addTimes(all, idle);
  return all;
}
