import { hash } from 'node:crypto';
import type { z } from 'zod';
import { SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job.ts';
import { jobSchema } from '../core/job-schema.ts';
import type { Handlers } from '../worker/compile-job.ts';
import { compileJob } from '../worker/compile-job.ts';
import { handlersOf } from './load-handlers.ts';

export interface ParsedJob {
  spec: JobSpec;
  handlers: Handlers;
}

const PROBLEMS_SHOWN = 3;

/** Checks a job wholly before anything starts. `origin` is what error messages call it. */
export function parseJob(definition: unknown, origin: string, nameWhenAbsent: string): ParsedJob {
  const handlers = handlersOf(definition);
  const parsed = jobSchema.safeParse(withoutHandlers(definition, origin));
  if (!parsed.success)
    throw new SeineError(`${origin}: ${describeProblems(parsed.error)}`, {
      hint: 'see docs/jobs.md for every field',
    });
  const { $schema: _, name, ...rest } = parsed.data;
  const spec: JobSpec = { ...rest, name: name ?? nameWhenAbsent };
  // Selectors, patterns and route names are compiled once here, so that mistakes show now.
  compileJob(spec, handlers);
  return { spec, handlers };
}

export function hashOfSpec(spec: JobSpec, bundle: string | null): string {
  return hash('sha256', JSON.stringify([spec, bundle]), 'hex').slice(0, 32);
}

function withoutHandlers(definition: unknown, origin: string): unknown {
  if (typeof definition !== 'object' || definition === null) {
    throw new SeineError(
      `${origin}: a job is an object, this is ${definition === null ? 'null' : typeof definition}`,
      {
        hint: 'export it: export default defineJob({ … })',
      },
    );
  }
  const { routes } = definition as { routes?: unknown };
  if (!Array.isArray(routes)) return definition;
  return {
    ...definition,
    routes: routes.map((route) => {
      if (typeof route !== 'object' || route === null || !('handler' in route)) return route;
      const { handler, ...rest } = route;
      return typeof handler === 'function' ? rest : route;
    }),
  };
}

function describeProblems(error: z.ZodError): string {
  const problems = error.issues.map((issue) => {
    const path = issue.path.map(String).join('.');
    return path === '' ? issue.message : `${path}: ${issue.message}`;
  });
  const more = problems.length - PROBLEMS_SHOWN;
  return problems.slice(0, PROBLEMS_SHOWN).join('; ') + (more > 0 ? `; and ${more} more` : '');
}
