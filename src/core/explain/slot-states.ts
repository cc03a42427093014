/**
 * Where the time of slots goes, and why a job is not faster.
 *
 * Slot         room for one batch under way. Two slots for ten seconds are 20 slot-seconds.
 * Slot-second  is in exactly one state, so that the shares of all states add up to 100 %:
 *
 * | state | the slot |
 * |---|---|
 * | network | waits for answers of sites |
 * | cpu | its worker computes: parsing, extraction, code of the job |
 * | browser | renders pages |
 * | archive | waits until pages and media are stored: disk or S3 |
 * | report | has finished, and its report is on the way; or its worker was lost |
 * | coldStart | waits for its worker to begin: queue, start of a function, loading of the job |
 * | hostGap | waits for the next request that a host's rate allows |
 * | hostParallelism | is free, and hosts with tasks have as many requests under way as they may |
 * | retryBackoff | is free, and tasks or hosts wait after failures |
 * | robots | waits for robots.txt |
 * | proxy | is free, and no proxy is usable |
 * | browserRoom | is free, and tasks need a browser that no worker has free |
 * | source | is free, and the source has not delivered the next URL yet |
 * | store | waits for the store: a report is written, tasks are lent, or there is no room |
 * | budget | is free, and the limits of the job allow no more |
 * | noWork | is free, and there is nothing left to start |
 *
 * The states from hostGap on are idle time. A free slot is in the state that stops the next task, see idle-reason.ts.
 * Inside a batch several things happen at once; the first of cpu, network, browser, archive, robots, hostGap that
 * applies counts.
 *
 * Wall time    is divided as well: into the time when all slots were taken (`full`), and for each reason the time when
 *              slots were free for it. What a change gains follows from these, see predict.ts.
 */
const BUSY_STATES = ['network', 'cpu', 'browser', 'archive', 'report', 'coldStart'] as const;

const IDLE_REASONS = [
  'hostGap',
  'hostParallelism',
  'retryBackoff',
  'robots',
  'proxy',
  'browserRoom',
  'source',
  'store',
  'budget',
  'noWork',
] as const;

export type IdleReason = (typeof IDLE_REASONS)[number];
export const SLOT_STATES = [...BUSY_STATES, ...IDLE_REASONS] as const;
export type SlotState = (typeof SLOT_STATES)[number];

/** Milliseconds by state; absent is none. */
export type SlotTimes = Partial<Record<SlotState, number>>;

/** What a worker can tell of its own time. */
const WORKER_STATES = [
  'network',
  'cpu',
  'browser',
  'archive',
  'report',
  'coldStart',
  'robots',
  'hostGap',
] as const;
export type WorkerState = (typeof WORKER_STATES)[number];
export type WorkerTimes = Partial<Record<WorkerState, number>>;

/** What nothing can be made of is left out: reports come through Redis or from functions. */
export function checkWorkerTimes(times: unknown): WorkerTimes {
  const checked: WorkerTimes = {};
  if (typeof times !== 'object' || times === null) return checked;
  for (const state of WORKER_STATES) {
    const ms = (times as WorkerTimes)[state];
    if (typeof ms === 'number' && Number.isFinite(ms) && ms > 0) checked[state] = ms;
  }
  return checked;
}

export function sumOf(times: SlotTimes): number {
  let sum = 0;
  for (const state of SLOT_STATES) sum += times[state] ?? 0;
  return sum;
}

export function addTimes(into: SlotTimes, times: SlotTimes, factor = 1): void {
  for (const state of SLOT_STATES) {
    const ms = times[state];
    if (ms !== undefined) into[state] = (into[state] ?? 0) + ms * factor;
  }
}
