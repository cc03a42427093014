import type { DueHost, HostFacts, HostSummary, PacedHost, RobotsEntry } from '../../ports/store.ts';

export type DueColumns = Omit<DueHost, 'pace' | 'ban'> & { pace: string | null; ban: string | null };

export function toDue({ pace, ban, ...row }: DueColumns): DueHost {
  return {
    ...row,
    pace: pace === null ? null : JSON.parse(pace),
    ban: ban === null ? null : JSON.parse(ban),
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

export type HostColumns = Omit<
  HostFacts,
  'pace' | 'ban' | 'profile' | 'lastError' | 'robots' | 'sharedWith'
> & {
  profile: string | null;
  sharedWith: string | null;
  pace: string | null;
  ban: string | null;
  lastError: string | null;
};

export function toHostFacts(row: HostColumns, robots: RobotsEntry[]): HostFacts {
  const { pace, ban, profile, lastError, sharedWith, ...rest } = row;
  return {
    ...rest,
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
