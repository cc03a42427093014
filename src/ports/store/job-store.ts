import type { CostLine } from '../../core/cost/cost.ts';
import type { Forecast } from '../../core/forecast/forecast.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { Counters, JobState, RequestedState } from '../../core/model.ts';
import type { PriorityRule } from '../../core/priority/priority.ts';

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
  /** Id of the API key that the job belongs to; null for the owner of the folder. */
  owner: string | null;
  /** Whether it waits for more URLs when all are finished. */
  keepOpen: boolean;
  /** The forecast that it was started with; null without one. */
  quote: Forecast | null;
  /** Whether its pages count against the limits of its key when they are fetched; else they did when they were accepted. */
  countsPages: boolean;
  /** The request with an Idempotency-Key that made it; null when that had none. */
  requestId: string | null;
}

export interface JobStore {
  /**
   * `unlessUnfinished`: the newest run of the name is returned instead if it has the same spec and is not over.
   * `requestId`: so is the job that the same request has made before.
   * `stopped`: nobody works on it until it is set to `running`; this is why.
   */
  create(
    job: JobCode & {
      name: string;
      now: number;
      owner?: string | null;
      unlessUnfinished?: boolean;
      requestId?: string | null;
      countsPages?: boolean;
      stopped?: string | null;
    },
  ): Promise<Job>;
  get(id: number): Promise<Job>;
  /** By name (its newest run) or `name-run`; null asks for the newest job. */
  find(name: string | null): Promise<Job | null>;
  list(limit: number): Promise<Job[]>;
  /** Newest first, those before `before`; of one owner, or of all when that is absent. */
  listBefore(options: { owner?: string; before: number; limit: number }): Promise<Job[]>;
  /** Null when there is none. */
  byId(id: number): Promise<Job | null>;
  /** All that are in state `running`, whether or not a coordinator is at work on them. */
  running(): Promise<Job[]>;
  /** All that are kept open and have this within their names. Looks at every job. */
  keptOpen(namePart: string): Promise<Job[]>;
  /** The newest run of each name, where that has a schedule. */
  scheduled(): Promise<Job[]>;
  counters(jobId: number): Promise<Counters>;
  update(
    jobId: number,
    change: Partial<
      Pick<Job, 'state' | 'requestedState' | 'reason' | 'endedAt' | 'workedMs' | 'priorities' | 'quote'> &
        JobCode
    >,
  ): Promise<void>;
  /**
   * Ends the job as `done`, or as `waiting` when it is kept open; one that was ended by others stays as it is. Null: it is
   * not over, because tasks were added since, or because it is to be cancelled, or stopped instead of waiting.
   */
  finish(jobId: number, now: number): Promise<JobState | null>;
  /** It is no longer kept open: one that waits is done. */
  closeToMore(jobId: number, now: number): Promise<void>;
  /**
   * The next pass, with today's code: sources are read from their start again. Tasks stay as they are until reopened.
   * `after`: only if that is still the newest pass; others may have begun the next one at this very moment.
   */
  beginPass(jobId: number, code: JobCode & { now: number; after?: number }): Promise<Job>;
  requestedState(jobId: number): Promise<RequestedState>;
  /** The bill of the job so far: one line for each item, none of them twice. */
  costs(jobId: number): Promise<CostLine[]>;
  /** Adds what no report tells of. */
  addCosts(jobId: number, lines: readonly CostLine[], now: number): Promise<void>;
  priorities(jobId: number): Promise<PriorityRule[]>;
  /** How far each source of the job has been read. */
  sources(jobId: number): Promise<SourcePosition[]>;
  /** This coordinator is at work on the job from now on. Where the store is its alone, that needs no writing down. */
  join(jobId: number): Promise<void>;
  /** The same, unless another coordinator is at work on it: then false. Of several that try at once, one gets it. */
  claim(jobId: number): Promise<boolean>;
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
