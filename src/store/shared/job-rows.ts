import { type JobState, type RequestedState, zeroCounters } from '../../core/model.ts';
import type { PriorityRule } from '../../core/priority/priority.ts';
import type { Job } from '../../ports/store.ts';

export interface JobColumns {
  id: number;
  name: string;
  run: number;
  spec: string;
  spec_hash: string;
  bundle: string | null;
  file: string | null;
  pass: number;
  pass_start: string | null;
  pass_started_at: number;
  state: JobState;
  requested_state: RequestedState;
  reason: string | null;
  created_at: number;
  ended_at: number | null;
  worked_ms: number;
  priorities: string | null;
  owner: string | null;
  keep_open: number | boolean;
  quote: string | null;
  counts_pages: number | boolean;
  request_id: string | null;
}

export const SELECT_JOBS = `
  SELECT id, name, run, spec, spec_hash, bundle, file, pass, start AS pass_start, started_at AS pass_started_at, state,
    requested_state, reason, created_at, ended_at, worked_ms, priorities, owner, keep_open, quote, counts_pages,
    request_id
  FROM jobs JOIN passes ON passes.job_id = jobs.id AND removed_at IS NULL`;

/** Takes the id before which, the owner or null, and the number of them. */
export const JOBS_BEFORE = `
  ${SELECT_JOBS} WHERE id < $1 AND (CAST($2 AS text) IS NULL OR owner = $2) ORDER BY id DESC LIMIT $3`;

/** The part of the name is the only parameter. */
export const keptOpenJobs = (parameter: '?' | '$1') =>
  `${SELECT_JOBS} WHERE keep_open AND name LIKE '%' || ${parameter} || '%' ORDER BY id`;

export const RUNNING_JOBS = `${SELECT_JOBS} WHERE state = 'running' ORDER BY id`;

/** `hasSchedule`: the condition of the index in each store. */
export const scheduledJobs = (hasSchedule: string) => `${SELECT_JOBS}
  WHERE ${hasSchedule} AND NOT EXISTS
    (SELECT 1 FROM jobs AS newer WHERE newer.name = jobs.name AND newer.run > jobs.run)
  ORDER BY id`;

export const UPDATABLE = {
  state: 'state',
  requestedState: 'requested_state',
  reason: 'reason',
  endedAt: 'ended_at',
  workedMs: 'worked_ms',
  priorities: 'priorities',
  quote: 'quote',
  spec: 'spec',
  specHash: 'spec_hash',
  bundle: 'bundle',
  file: 'file',
} as const;

/** What a job that was over becomes when URLs are added to it, in both stores. */
export const RUN_ON = `
  UPDATE jobs SET state = 'running', requested_state = 'run', reason = NULL, ended_at = NULL
  WHERE state IN ('done', 'waiting') AND id = `;

/** What `finish` makes of a job that has nothing left; null leaves it at work. */
export function finishedState({
  state,
  requestedState,
  keepOpen,
}: Pick<Job, 'state' | 'requestedState' | 'keepOpen'>): JobState | null {
  if (state === 'stopped' || state === 'tripped' || state === 'cancelled') return state;
  if (requestedState === 'cancel' || (keepOpen && requestedState === 'stop')) return null;
  return keepOpen ? 'waiting' : 'done';
}

export function toJob(row: JobColumns): Job {
  return {
    id: row.id,
    name: row.name,
    run: row.run,
    spec: JSON.parse(row.spec),
    specHash: row.spec_hash,
    bundle: row.bundle,
    file: row.file,
    pass: row.pass,
    passStart: row.pass_start === null ? null : { ...zeroCounters(), ...readJson<object>(row.pass_start) },
    passStartedAt: row.pass_started_at,
    state: row.state,
    requestedState: row.requested_state,
    reason: row.reason,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    workedMs: row.worked_ms,
    priorities: toPriorities(row.priorities),
    owner: row.owner,
    keepOpen: Boolean(row.keep_open),
    quote: readJson<NonNullable<Job['quote']>>(row.quote),
    countsPages: Boolean(row.counts_pages),
    requestId: row.request_id,
  };
}

export function toPriorities(json: string | null | undefined): PriorityRule[] {
  const rules = readJson<PriorityRule[]>(json);
  return Array.isArray(rules) ? rules : [];
}

/** What cannot be read counts as not there: one broken row must not keep the jobs of all others from being read. */
function readJson<T>(json: string | null | undefined): T | null {
  if (json == null) return null;
  try {
    return JSON.parse(json) as T;
  } catch {
    return null;
  }
}

/** Fields that are kept as JSON. */
export function toColumn(field: string, value: unknown): string | number | null {
  return field === 'spec' || field === 'priorities' || field === 'quote'
    ? JSON.stringify(value)
    : (value as string | number | null);
}
