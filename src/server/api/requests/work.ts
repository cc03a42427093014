import type { RunView, WorkerView } from '../../../coordinator/reports/run-view.ts';
import type { StopReason } from '../../../coordinator/stop.ts';
import type { Forecast } from '../../../core/forecast/forecast.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import type { Scope } from '../../../core/keys/api-key.ts';
import type { Metric } from '../../../observe/metrics/text-format.ts';
import type { WorkerHeartbeat } from '../../../ports/dispatcher.ts';
import type { EscalationStore } from '../../../ports/store/escalation-store.ts';
import type { ProxyStore } from '../../../ports/store/proxy-store.ts';
import type { HostStore, Job, NumberedTask, Store, Views } from '../../../ports/store.ts';
import type { PackedTasks } from '../scrape/packed-tasks.ts';
import type { ScrapeRequest } from './options.ts';

/** Who sent a request. */
export interface Caller {
  /** Null: the machine's user on loopback while there are no keys, or a command with the token of the folder. */
  keyId: string | null;
  scopes: ReadonlySet<Scope>;
  /** The browser sent the key by itself: only pages of this server may use it. */
  isByCookie?: true;
  /** Nothing but the address says who it is. */
  isByAddress?: true;
}

/**
 * What the routes of the API ask of the thread that runs the jobs and writes into the store. Each is a call that takes a while:
 * arguments and answers are copied, and a call waits behind what that thread does just then. What is only read comes from
 * the read store instead (`ports/store/read-store.ts`).
 */
export interface Work {
  store: StoreCalls;
  runner: JobControl;
  workers: WorkerCalls;
  adding: AddCalls;
  scrapes: ScrapeCalls;
  forecasts: ForecastCalls;
  server: ServerCalls;
}

/** Methods that can be called from another thread. */
type Calls<T> = {
  [K in keyof T as T[K] extends (...args: never[]) => Promise<unknown> ? K : never]: T[K];
};

interface StoreCalls
  extends Pick<Store, 'jobs' | 'frontier' | 'keys' | 'webhooks' | 'alerts' | 'requests' | 'removals'> {
  readonly hosts: Calls<HostStore>;
  readonly proxies: Pick<ProxyStore, 'load'>;
  readonly views: Calls<Views>;
  readonly escalations: Pick<EscalationStore, 'load'>;
}

/** Jobs that are at work in this process. */
export interface JobControl {
  /** Tasks of a job that is at work already are looked for at once. */
  start(job: Job): Promise<void>;
  /** A job that is not at work here stays as it is. */
  stop(jobId: number, reason: StopReason): Promise<void>;
  wake(jobId: number): Promise<void>;
  has(jobId: number): Promise<boolean>;
  /** Of those that are at work here. */
  views(jobIds: readonly number[]): Promise<ReadonlyMap<number, RunView>>;
  workers(): Promise<WorkerView[]>;
}

/** The workers that the server knows, see `server/workers/`. */
interface WorkerCalls {
  live(): Promise<WorkerHeartbeat[]>;
  /** Asks a worker to take no more batches; null when there is none of this name that can be asked. */
  drain(worker: string): Promise<WorkerHeartbeat | null>;
}

export interface AcceptedScrape {
  jobId: number;
  taskId: number;
}

/** URLs of requests. */
export interface AddCalls {
  /** They are written down when this returns; `rejected` are those beside them that cannot be used. */
  write(
    jobId: number,
    tasks: PackedTasks,
    options: { rejected: number; now: number },
  ): Promise<{ accepted: number; duplicates: number }>;
}

/** Single pages. */
export interface ScrapeCalls {
  /** The scrape is written down when this returns. Scrapes of one page at the same time share one fetch. */
  accept(asked: ScrapeRequest, caller: Caller): Promise<AcceptedScrape>;
  /** Null when the time is over before the task is. */
  finished(taskId: number, waitMs: number): Promise<NumberedTask | null>;
  /** Both in one call. */
  scrape(
    asked: ScrapeRequest,
    caller: Caller,
    waitMs: number,
  ): Promise<AcceptedScrape & { task: NumberedTask | null }>;
}

export interface ForecastCalls {
  /** Runs a sample under the limits of all jobs, if there has to be one. */
  ofSpec(spec: JobSpec, options: { sample: number | null; owner: string | null }): Promise<Forecast>;
  /** What a job whose pages are written down comes to, without any request. */
  ofJob(job: Job): Promise<Forecast>;
}

interface ServerCalls {
  /** Whether work can be done now. */
  isReady(): Promise<boolean>;
  /** Answers of calls with the token, by path; null when there is nothing at it. */
  internal(method: string, path: string): Promise<object | null>;
  /** Of the jobs of this owner, or of all; of workers and of the process. */
  metrics(owner: string | null): Promise<Metric[]>;
  /** Jobs were marked to be deleted. */
  removeJobs(): Promise<void>;
}
