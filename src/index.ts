export type { JobSummary } from './coordinator/jobs.ts';
export type { RouteQuality, RunView } from './coordinator/reports/run-view.ts';
export { EXIT_CODES, SeineError } from './core/errors.ts';
export { FAILURES, type FailureCode, SKIPS, type SkipCode } from './core/failures.ts';
export type { JobInput, JobSpec } from './core/job-schema/job.ts';
export type {
  AttemptRow,
  Counters,
  MediaRow,
  RecordRow,
  RecordVersionRow,
  ShotRef,
  ShotRow,
  TaskRow,
  TaskState,
} from './core/model.ts';
export {
  defineJob,
  type JobDefinition,
  type Money,
  type RouteDefinition,
  type SelectedRecord,
} from './job-file/define-job.ts';
export {
  type AddedUrl,
  openSeine,
  type RunHandle,
  type Seine,
  type SeineOptions,
  type StoredPage,
} from './library.ts';
export type { ReparseResult } from './reparse/reparse.ts';
export type { Handler, RecordData, RecordSchema, RouteCode } from './worker/job/route-code.ts';
export type { Page } from './worker/page/page.ts';
