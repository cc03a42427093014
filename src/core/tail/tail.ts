import type { Permit } from '../batch/batch.ts';

/**
 * The tail: the last 1 % of the tasks of a run, once its sources are read. A few slow requests can make it take longer than
 * all that came before.
 *
 * | policy | what is done in the tail |
 * |---|---|
 * | wait | nothing: everything gets its whole time |
 * | repeat | a batch that is late is taken back, once for each of its tasks, and another worker requests its pages |
 * | defer | the same; and the run ends when its tail has taken a tenth of its time: what is left waits for the next run |
 *
 * A batch that was taken back is over: whatever its worker still reports changes nothing, as after the end of a lease.
 */
export const TAIL_POLICIES = ['wait', 'repeat', 'defer'] as const;
export type TailPolicy = (typeof TAIL_POLICIES)[number];

const TAIL_SHARE = 0.01;
const TIME_SHARE = 0.1;
/** A tail that takes no longer than this is no trouble, however short the run was. */
const DEFER_MS_MIN = 30_000;

export function isTail({ accepted, left }: { accepted: number; left: number }): boolean {
  return left > 0 && left <= accepted * TAIL_SHARE;
}

/** Whether the tail has taken all the time that it may: of a run that had worked for `beganMs` when it began. */
export function isTailOver({ beganMs, workedMs }: { beganMs: number; workedMs: number }): boolean {
  const allowedMs = Math.max(DEFER_MS_MIN, (beganMs * TIME_SHARE) / (1 - TIME_SHARE));
  return workedMs - beganMs >= allowedMs;
}

/** What a batch still has out at one host. */
export interface OutstandingHost {
  permit: Permit;
  /** Tasks without an outcome. */
  tasks: number;
  /** Requests that the host takes at once. */
  parallel: number;
}

/** So much longer than pages of the host usually take, and never less than this, is late. */
const LATE_TIMES = 4;
const LATE_MS_MIN = 2_000;
const USUAL_MS = 500;

/**
 * Whether the pages of a batch may be requested a second time by now: the hosts are free for others, since nothing can be
 * sent under the permits any more, the answers are overdue, and the host takes both requests for each page at once. A host
 * that may be down is not asked twice.
 */
export function isLate(hosts: readonly OutstandingHost[], plannedAt: number, now: number): boolean {
  if (hosts.length === 0) return false;
  return hosts.every(({ permit, tasks, parallel }) => {
    // Without a gap the end of a permit says nothing: its requests leave at once.
    const sentBy = permit.gapMs > 0 ? permit.endAt : plannedAt;
    const lateMs = Math.max(LATE_MS_MIN, (permit.usualMs ?? USUAL_MS) * LATE_TIMES);
    return permit.probe === undefined && now >= sentBy + lateMs && tasks * 2 <= parallel;
  });
}
