import { SeineError } from '../errors.ts';
import type { JobSpec } from '../job-schema/job.ts';
import { compilePatterns } from '../url/pattern.ts';

/** A priority that a person gave to tasks of a job while it ran, instead of the one that the job gives them. */
export interface PriorityRule {
  /** Of URLs, as in a job; or `route:` and the name of a route. */
  pattern: string;
  priority: number;
}

/** The priority of a task by such rules; null when none is about it. */
export type PriorityOf = (task: { url: string; route: string | null }) => number | null;

const ROUTE = 'route:';
/** As in a job. */
const PRIORITY_MAX = 1_000;
/** Each new task is compared with all of them. */
const RULES_MAX = 100;

/** Where several rules are about a task, the one that was given last holds. */
export function compilePriorities(
  rules: readonly PriorityRule[],
  { routes }: Pick<JobSpec, 'routes'>,
): PriorityOf {
  const named = routes.map(({ name, match }) => ({
    name,
    matches: match ? compilePatterns(match) : () => true,
  }));
  const routeOf = (url: string) => named.find(({ matches }) => matches(url))?.name ?? null;
  const compiled = rules.toReversed().map(({ pattern, priority }) => {
    if (!pattern.startsWith(ROUTE)) {
      const matches = compilePatterns([pattern]);
      return { priority, fits: (url: string, _: string | null) => matches(url) };
    }
    const wanted = pattern.slice(ROUTE.length);
    return { priority, fits: (url: string, route: string | null) => (route ?? routeOf(url)) === wanted };
  });
  return ({ url, route }) => compiled.find(({ fits }) => fits(url, route))?.priority ?? null;
}

/** What a person asks for; a SeineError where that cannot be. */
export function parsePriorityRule(
  pattern: string,
  priority: string,
  spec: Pick<JobSpec, 'routes'>,
): PriorityRule {
  const number = Number(priority);
  if (!/^-?\d+$/.test(priority) || Math.abs(number) > PRIORITY_MAX)
    throw new SeineError(
      `a priority must be a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}, got '${priority}'`,
    );
  const route = pattern.startsWith(ROUTE) ? pattern.slice(ROUTE.length) : null;
  if (route !== null && spec.routes.every(({ name }) => name !== route))
    throw new SeineError(`the job has no route '${route}'`, {
      hint: `its routes: ${spec.routes.map(({ name }) => name).join(', ') || 'none'}`,
    });
  const rule = { pattern, priority: number };
  compilePriorities([rule], spec);
  return rule;
}

/** The rules with one more; one for the same tasks goes. */
export function addPriorityRule(rules: readonly PriorityRule[], rule: PriorityRule): PriorityRule[] {
  const added = [...rules.filter(({ pattern }) => pattern !== rule.pattern), rule];
  if (added.length > RULES_MAX)
    throw new SeineError(`a run can have at most ${RULES_MAX} changed priorities`, {
      hint: 'use patterns that match more URLs',
    });
  return added;
}
