import type { JobInput } from '../core/job-schema/job.ts';
import type { RecordSchema, RouteCode } from '../worker/job/route-code.ts';

type RouteInput = NonNullable<JobInput['routes']>[number];

/** A route as people write it in TypeScript: what a YAML file may say, plus functions and a schema object. */
export type RouteDefinition = Omit<RouteInput, 'schema'> &
  Omit<RouteCode, 'schema'> & {
    /** JSON Schema, or an object with `safeParse` as zod makes them; what that returns replaces the record. */
    schema?: RouteInput['schema'] | RecordSchema;
  };

export type JobDefinition = Omit<JobInput, 'routes'> & { routes?: RouteDefinition[] };

/** Gives a job file its types; the default export of the file. */
export function defineJob(job: JobDefinition): JobDefinition {
  return job;
}
