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
}

export const SELECT_JOBS = `
  SELECT id, name, run, spec, spec_hash, bundle, file, pass, start AS pass_start, started_at AS pass_started_at, state,
    requested_state, reason, created_at, ended_at, worked_ms, priorities
  FROM jobs JOIN passes ON passes.job_id = jobs.id`;

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
  spec: 'spec',
  specHash: 'spec_hash',
  bundle: 'bundle',
  file: 'file',
} as const;

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
    passStart: row.pass_start === null ? null : { ...zeroCounters(), ...JSON.parse(row.pass_start) },
    passStartedAt: row.pass_started_at,
    state: row.state,
    requestedState: row.requested_state,
    reason: row.reason,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    workedMs: row.worked_ms,
    priorities: toPriorities(row.priorities),
  };
}

export function toPriorities(json: string | null | undefined): PriorityRule[] {
  return json == null ? [] : JSON.parse(json);
}

/** Fields that are kept as JSON. */
export function toColumn(field: string, value: unknown): string | number | null {
  return field === 'spec' || field === 'priorities'
    ? JSON.stringify(value)
    : (value as string | number | null);
}
