import type { DueHost, HostFacts, HostSummary, PacedHost, RobotsEntry } from '../../ports/store.ts';
import { WAITING } from './states.ts';

export type DueColumns = Omit<DueHost, 'pace' | 'ban'> & { pace: string | null; ban: string | null };

/** Column by column: copying the rest of a row took most of the time, as rows have no class. */
export function toDue(row: DueColumns): DueHost {
  return {
    id: row.id,
    host: row.host,
    ready: row.ready,
    nextAt: row.nextAt,
    crawlDelayMs: row.crawlDelayMs,
    failuresInRow: row.failuresInRow,
    rests: row.rests,
    reachedAt: row.reachedAt,
    pace: row.pace === null ? null : JSON.parse(row.pace),
    ban: row.ban === null ? null : JSON.parse(row.ban),
  };
}

export type PacedColumns = DueColumns & { lastSentAt: number };

export function toPaced({ lastSentAt, ...row }: PacedColumns): PacedHost {
  return { ...toDue(row), lastSentAt };
}

export interface HostSummaryColumns extends Omit<HostSummary, 'pace' | 'ban' | 'lastError'> {
  pace: string | null;
  ban: string | null;
  lastError: string | null;
}

export const selectHostSummaries = ([after, limit]: readonly [after: string, limit: string]) => `
  SELECT host, requests, next_at AS "nextAt", failures_in_row AS "failuresInRow", rests, pace, ban,
    last_error AS "lastError"
  FROM hosts WHERE host > ${after} ORDER BY host LIMIT ${limit}`;

export function toHostSummary({ pace, ban, lastError, ...row }: HostSummaryColumns): HostSummary {
  return {
    ...row,
    pace: pace === null ? null : JSON.parse(pace),
    ban: ban === null ? null : JSON.parse(ban),
    lastError: lastError === null ? null : JSON.parse(lastError),
  };
}

/** Other jobs that are named as sharing a host. */
const SHARED_NAMED_MAX = 5;
const STEP = 500;

/** Waiting tasks that are counted: a host may have millions, and a job many hosts. */
const WAITING_COUNTED_MAX = 1_000;

const waitingTasks = (columns: string) => `
  (SELECT ${columns} FROM tasks
   WHERE tasks.job_id = queues.job_id AND tasks.host_id = queues.host_id AND tasks.state = ${WAITING}
   LIMIT ${WAITING_COUNTED_MAX}) AS waiting_tasks`;

/** What waits at the host of a row of `queues`. */
export const WAITING_COLUMNS = `
  (SELECT count(*) FROM ${waitingTasks('id')}) AS waiting,
  (SELECT min(due_at) FROM ${waitingTasks('due_at')}) AS "waitingUntil",
  (SELECT code FROM ${waitingTasks('due_at, code')} ORDER BY due_at LIMIT 1) AS "waitingCode"`;

export type HostColumns = Omit<
  HostFacts,
  'pace' | 'ban' | 'profile' | 'lastError' | 'robots' | 'sharedWith' | 'waiting'
> & {
  waiting: number;
  waitingUntil: number | null;
  waitingCode: string | null;
  profile: string | null;
  sharedWith: string | null;
  pace: string | null;
  ban: string | null;
  lastError: string | null;
};

export function toHostFacts(row: HostColumns, robots: RobotsEntry[]): HostFacts {
  const { pace, ban, profile, lastError, sharedWith, waiting, waitingUntil, waitingCode, ...rest } = row;
  return {
    ...rest,
    waiting: waitingUntil === null ? null : { count: waiting, until: waitingUntil, code: waitingCode },
    sharedWith: sharedWith?.split(' ').slice(0, SHARED_NAMED_MAX) ?? [],
    pace: pace === null ? null : JSON.parse(pace),
    ban: ban === null ? null : JSON.parse(ban),
    profile: profile === null ? null : JSON.parse(profile),
    lastError: lastError === null ? null : JSON.parse(lastError),
    robots,
  };
}

export async function* hostSteps(
  read: (after: string, limit: number) => Promise<HostFacts[]>,
): AsyncGenerator<HostFacts, void, void> {
  for (let after = ''; ; ) {
    const hosts = await read(after, STEP);
    yield* hosts;
    const last = hosts.at(-1);
    if (!last) return;
    after = last.host;
  }
}

/** Whether the gap that a host waits for is that of another job, which no longer runs. */
export const pacedByEnded = (jobId: string) =>
  `hosts.paced_by <> ${jobId}
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = hosts.paced_by AND jobs.state = 'running')`;
