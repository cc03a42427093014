import { hash } from 'node:crypto';
import type { z } from 'zod';
import { SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import { jobSchema } from '../core/job-schema/job-schema.ts';
import { checkSchedule } from '../core/job-schema/schedule.ts';
import { unknownRouteOf } from '../core/job-schema/source-name.ts';
import { suggestion } from '../core/text/nearest-name.ts';
import { compileJob } from '../worker/compile-job.ts';
import { CODE_NAMES, isRecordSchema, type JobHandlers } from '../worker/job/route-code.ts';
import {
  checkAccess,
  checkAddresses,
  checkHeaders,
  checkRoute,
  checkServiceUrls,
  checkShape,
  checkSources,
} from './check-job.ts';
import { type JobProblem, placeName, problemsOf, valueAt } from './describe-problem.ts';
import { handlersOf } from './load-handlers.ts';

export interface ParsedJob {
  spec: JobSpec;
  handlers: JobHandlers;
}

const PROBLEMS_SHOWN = 3;
/** Zod compiles a schema into code of its own otherwise, which pays for thousands of jobs and costs 40 ms for one. */
const ONCE = { jitless: true };

/** Finds the lines of a job file. Each answer is `:line:column`, or nothing where that is not known. */
export interface JobLines {
  /** Of a value, or of the name of a field. */
  ofPath(path: readonly PropertyKey[], isName: boolean): string;
  /** Of the first value that is written so. */
  ofValue(text: string): string;
}

const NO_LINES: JobLines = { ofPath: () => '', ofValue: () => '' };

/**
 * Checks a job wholly before anything starts. `origin` is what error messages call it. A job that was parsed before has
 * its code apart from it.
 */
export async function parseJob(
  definition: unknown,
  origin: string,
  nameWhenAbsent: string,
  handlers: JobHandlers = handlersOf(definition),
  lines: JobLines = NO_LINES,
): Promise<ParsedJob> {
  const data = withoutCode(definition, origin);
  checkShape(data, origin);
  const parsed = jobSchema.safeParse(data, ONCE);
  if (!parsed.success) throw refused(parsed.error, data, origin, lines);
  const { $schema: _, name, ...rest } = parsed.data;
  const spec: JobSpec = { ...rest, name: name ?? nameWhenAbsent };
  try {
    await checkMeaning(spec, handlers);
  } catch (error) {
    if (!(error instanceof SeineError)) throw error;
    const { exit, hint, written, cause, message } = error;
    const line = written === null ? '' : lines.ofValue(written);
    throw new SeineError(`${origin}${line}: ${message}`, { exit, hint: hint ?? undefined, cause });
  }
  return { spec, handlers };
}

/** What a schema cannot see: fields that contradict each other, selectors, patterns, names of routes. */
async function checkMeaning(spec: JobSpec, handlers: JobHandlers): Promise<void> {
  for (const route of spec.routes) checkRoute(route, handlers.get(route.name) ?? {});
  checkAccess(spec);
  checkAddresses(spec);
  checkSources(spec);
  checkHeaders(spec);
  checkServiceUrls(spec);
  // Selectors, patterns and route names are compiled once here, so that mistakes show now.
  await compileJob(spec, handlers);
  const unknown = unknownRouteOf(spec);
  if (unknown !== null)
    throw new SeineError(
      `sources: unknown route '${unknown}'${suggestion(
        unknown,
        spec.routes.map(({ name }) => name),
      )}`,
      { written: unknown },
    );
  if (spec.schedule) checkSchedule(spec.schedule, Date.now());
}

function refused(error: z.ZodError, data: unknown, origin: string, lines: JobLines): SeineError {
  const problems = problemsOf(error, jobSchema, data);
  const noSources = valueAt(data, ['sources']) === undefined || isEmptyList(valueAt(data, ['sources']));
  if (noSources && problems.every(({ path }) => path[0] === 'sources'))
    return new SeineError(`${origin}: the job has no sources, so there is nothing to fetch`, {
      hint: 'say where to start, such as `sources: https://shop.example/`',
    });
  const [first] = problems;
  const line = first ? lines.ofPath(first.path, first.isName) : '';
  return new SeineError(`${origin}${line}: ${describeProblems(problems, data)}`, {
    hint: 'see docs/jobs.md for every field',
  });
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** A job that an older Seine stored lacks what jobs could not say then. */
export function completeSpec({ name, ...spec }: JobSpec): JobSpec {
  const { $schema: _, ...rest } = jobSchema.parse(spec, ONCE);
  return { ...rest, name };
}

/** A stored job that was changed. */
export function checkSpec({ name, ...spec }: JobSpec, origin: string): JobSpec {
  const parsed = jobSchema.safeParse(spec, ONCE);
  if (!parsed.success) throw refused(parsed.error, spec, origin, NO_LINES);
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
    );
  }
  const { routes } = definition as { routes?: unknown };
  if (!Array.isArray(routes)) return definition;
  return {
    ...definition,
    routes: routes.map((route: unknown, index) =>
      typeof route === 'object' && route !== null
        ? dataOf({ ...route }, `${origin}: ${placeName(['routes', index], definition)}`)
        : route,
    ),
  };
}

/** A route without its functions and its schema object, which the schema of jobs knows nothing of. */
function dataOf(route: Record<string, unknown>, place: string): Record<string, unknown> {
  for (const name of CODE_NAMES) {
    const kind = typeof route[name];
    if (kind !== 'function' && kind !== 'undefined')
      throw new SeineError(`${place}: ${name} must be a function, got ${kindOf(route[name])}`, {
        hint: 'functions work only in TypeScript and JavaScript jobs',
      });
    delete route[name];
  }
  const { schema } = route;
  if (isRecordSchema(schema)) delete route.schema;
  else if (schema !== undefined && !isPlainObject(schema))
    throw new SeineError(
      `${place}: schema must be a JSON Schema or an object with safeParse, such as a zod schema`,
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

function describeProblems(problems: readonly JobProblem[], data: unknown): string {
  const texts = problems.map(({ path, message }) => {
    const place = placeName(path, data);
    return place === '' ? message : `${place}: ${message}`;
  });
  const more = texts.length - PROBLEMS_SHOWN;
  return texts.slice(0, PROBLEMS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
