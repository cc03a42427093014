import type { JobSpec } from '../core/job-schema/job.ts';
import type { Counters, JobState, RequestedState } from '../core/model.ts';
import type { PriorityRule } from '../core/priority/priority.ts';

/** What a job is made of: its spec, its code, and where it was written down. */
export interface JobCode {
  spec: JobSpec;
  specHash: string;
  /** Blob key of the job's code. */
  bundle: string | null;
  /** The job file, for `reparse` with today's code; null for jobs from the command line. */
  file: string | null;
}

export interface Job extends JobCode {
  id: number;
  name: string;
  /** Counts the runs of this name from 1; `name-run` names one of them. */
  run: number;
  /** Counts the visits of this run to its URLs from 1; a refresh begins the next. */
  pass: number;
  /** Counters when the pass began, so that its own can be told; null in the first. */
  passStart: Counters | null;
  state: JobState;
  requestedState: RequestedState;
  /** Why the job is stopped or tripped, for people. */
  reason: string | null;
  createdAt: number;
  /** When the present pass began. */
  passStartedAt: number;
  endedAt: number | null;
  /** Time spent working, over all resumes. */
  workedMs: number;
  /** Given by people while it ran, the newest last. */
  priorities: readonly PriorityRule[];
}

export interface JobStore {
  /** `unlessUnfinished`: the newest run of the name is returned instead if it has the same spec and is not over. */
  create(job: JobCode & { name: string; now: number; unlessUnfinished?: boolean }): Promise<Job>;
  get(id: number): Promise<Job>;
  /** By name (its newest run) or `name-run`; null asks for the newest job. */
  find(name: string | null): Promise<Job | null>;
  list(limit: number): Promise<Job[]>;
  /** All that are in state `running`, whether or not a coordinator is at work on them. */
  running(): Promise<Job[]>;
  /** The newest run of each name, where that has a schedule. */
  scheduled(): Promise<Job[]>;
  counters(jobId: number): Promise<Counters>;
  update(
    jobId: number,
    change: Partial<
      Pick<Job, 'state' | 'requestedState' | 'reason' | 'endedAt' | 'workedMs' | 'priorities'> & JobCode
    >,
  ): Promise<void>;
  /** The next pass, with today's code: sources are read from their start again. Tasks stay as they are until reopened. */
  beginPass(jobId: number, code: JobCode & { now: number }): Promise<Job>;
  requestedState(jobId: number): Promise<RequestedState>;
  priorities(jobId: number): Promise<PriorityRule[]>;
  /** How far each source of the job has been read. */
  sources(jobId: number): Promise<SourcePosition[]>;
  /** This coordinator is at work on the job from now on. Where the store is its alone, that needs no writing down. */
  join(jobId: number): Promise<void>;
  /** It no longer is; how many others are. */
  leave(jobId: number): Promise<number>;
  /** Coordinators at work on the job, as far as the store knows of them. */
  atWork(jobId: number): Promise<number>;
  /** Whether this coordinator is the one that reads the job's sources. No other one is while it is at work. */
  takeSources(jobId: number): Promise<boolean>;
}

/** `position` is opaque to the store: the source alone knows how to continue from it. */
export interface SourcePosition {
  /** Index of the source in the job; -1 for tasks of an earlier pass. */
  source: number;
  position: string | null;
  done: boolean;
  rows: number;
  rejected: number;
}

/** The source that stands for the tasks of earlier passes. */
export const REOPENED_SOURCE = -1;
