export type { JobSummary } from './coordinator/jobs.ts';
export type { RunView } from './coordinator/run-view.ts';
export { EXIT_CODES, SeineError } from './core/errors.ts';
export { FAILURES, type FailureCode, SKIPS, type SkipCode } from './core/failures.ts';
export type { JobInput, JobSpec } from './core/job.ts';
export type { AttemptRow, Counters, RecordRow, TaskRow, TaskState } from './core/model.ts';
export { defineJob, type JobDefinition } from './job/define-job.ts';
export { openSeine, type RunHandle, type Seine, type SeineOptions } from './library.ts';
export type { Handler, Page } from './worker/page.ts';
