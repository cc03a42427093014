import type { JobInput } from '../core/job.ts';
import type { Handler } from '../worker/page.ts';

type RouteInput = NonNullable<JobInput['routes']>[number];

/** A job as people write it in TypeScript: the schema, plus handlers. */
export type JobDefinition = Omit<JobInput, 'routes'> & { routes?: (RouteInput & { handler?: Handler })[] };

/** Gives a job file its types; the default export of the file. */
export function defineJob(job: JobDefinition): JobDefinition {
  return job;
}
