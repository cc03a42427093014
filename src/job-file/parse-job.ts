import { hash } from 'node:crypto';
import type { z } from 'zod';
import { SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import { jobSchema } from '../core/job-schema/job-schema.ts';
import { checkSchedule } from '../core/job-schema/schedule.ts';
import { unknownRouteOf } from '../core/job-schema/source-name.ts';
import { compileJob } from '../worker/compile-job.ts';
import { CODE_NAMES, isRecordSchema, type JobHandlers } from '../worker/job/route-code.ts';
import { checkAccess, checkHeaders, checkRoute, checkShape, checkSources } from './check-job.ts';
import { handlersOf } from './load-handlers.ts';

export interface ParsedJob {
  spec: JobSpec;
  handlers: JobHandlers;
}

const PROBLEMS_SHOWN = 3;

/**
 * Checks a job wholly before anything starts. `origin` is what error messages call it. A job that was parsed before has
 * its code apart from it.
 */
export async function parseJob(
  definition: unknown,
  origin: string,
  nameWhenAbsent: string,
  handlers: JobHandlers = handlersOf(definition),
): Promise<ParsedJob> {
  const data = withoutCode(definition, origin);
  checkShape(data, origin);
  const parsed = jobSchema.safeParse(data);
  if (!parsed.success)
    throw new SeineError(`${origin}: ${describeProblems(parsed.error)}`, {
      hint: 'see docs/jobs.md for every field',
    });
  const { $schema: _, name, ...rest } = parsed.data;
  const spec: JobSpec = { ...rest, name: name ?? nameWhenAbsent };
  for (const route of spec.routes) checkRoute(route, handlers.get(route.name) ?? {});
  checkAccess(spec);
  checkSources(spec);
  checkHeaders(spec);
  // Selectors, patterns and route names are compiled once here, so that mistakes show now.
  await compileJob(spec, handlers);
  const unknown = unknownRouteOf(spec);
  if (unknown !== null) throw new SeineError(`${origin}: sources: unknown route '${unknown}'`);
  if (spec.schedule) checkSchedule(spec.schedule, Date.now());
  return { spec, handlers };
}

/** A job that an older Seine stored lacks what jobs could not say then. */
export function completeSpec({ name, ...spec }: JobSpec): JobSpec {
  const { $schema: _, ...rest } = jobSchema.parse(spec);
  return { ...rest, name };
}

/** A stored job that was changed. */
export function checkSpec({ name, ...spec }: JobSpec, origin: string): JobSpec {
  const parsed = jobSchema.safeParse(spec);
  if (!parsed.success) throw new SeineError(`${origin}: ${describeProblems(parsed.error)}`);
  const { $schema: _, ...rest } = parsed.data;
  return { ...rest, name };
}

export function hashOfSpec(spec: JobSpec, bundle: string | null): string {
  return hash('sha256', JSON.stringify([spec, bundle]), 'hex').slice(0, 32);
}

function withoutCode(definition: unknown, origin: string): unknown {
  if (typeof definition !== 'object' || definition === null) {
    throw new SeineError(
      `${origin}: a job must be an object, got ${definition === null ? 'null' : typeof definition}`,
      {
        hint: 'export it: export default defineJob({ … })',
      },
    );
  }
  const { routes } = definition as { routes?: unknown };
  if (!Array.isArray(routes)) return definition;
  return {
    ...definition,
    routes: routes.map((route: unknown, index) =>
      typeof route === 'object' && route !== null
        ? dataOf({ ...route }, `${origin}: routes.${index}`)
        : route,
    ),
  };
}

/** A route without its functions and its schema object, which the schema of jobs knows nothing of. */
function dataOf(route: Record<string, unknown>, place: string): Record<string, unknown> {
  for (const name of CODE_NAMES) {
    const kind = typeof route[name];
    if (kind !== 'function' && kind !== 'undefined')
      throw new SeineError(`${place}.${name} must be a function, got ${kindOf(route[name])}`, {
        hint: 'functions work only in TypeScript and JavaScript jobs',
      });
    delete route[name];
  }
  const { schema } = route;
  if (isRecordSchema(schema)) delete route.schema;
  else if (schema !== undefined && !isPlainObject(schema))
    throw new SeineError(
      `${place}.schema must be a JSON Schema or an object with safeParse, such as a zod schema`,
    );
  return route;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function describeProblems(error: z.ZodError): string {
  const problems = error.issues.flatMap(specificOf).map(({ path, message }) => {
    const place = path.map(String).join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  const more = problems.length - PROBLEMS_SHOWN;
  return problems.slice(0, PROBLEMS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
}

type Issue = z.core.$ZodIssue;

/** Where a value may be one of several kinds: what is wrong with it as the one that it seems to be, if that is clear. */
function specificOf(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const isAnother = ({ code, path }: Issue) => code === 'invalid_type' && path.length === 0;
  const [only, ...others] = issue.errors.filter((kind) => !kind.some(isAnother));
  if (only === undefined || others.length > 0) return [issue];
  return only.flatMap((inner) => specificOf({ ...inner, path: [...issue.path, ...inner.path] }));
}
