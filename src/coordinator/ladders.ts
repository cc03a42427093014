import type { BatchTask } from '../core/batch/batch.ts';
import { fetcherOfRoute, ladderOf, type Rung } from '../core/escalation/escalation.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import { compilePatterns } from '../core/url/pattern.ts';

/** The ways of one route. */
export interface Ladder {
  ladder: Rung[];
  /** Under which a route that takes a browser where pages need one keeps what it learns; null for others. */
  scriptsKey: string | null;
}

/** The ways of asking that a job allows, by the route of a task. */
export class Ladders {
  readonly #routes: (Ladder & { name: string; matches: (url: string) => boolean })[];
  readonly #ofNone: Ladder;

  constructor(spec: JobSpec) {
    this.#routes = spec.routes.map((route) => ({
      name: route.name,
      matches: route.match ? compilePatterns(route.match) : () => true,
      ladder: ladderOf(route, spec),
      // Pages of a route are alike also where their URLs are not: titles in paths make templates of their own.
      scriptsKey: fetcherOfRoute(route) === 'auto' ? `@route ${route.name}` : null,
    }));
    this.#ofNone = { ladder: ladderOf(null, spec), scriptsKey: null };
  }

  some(test: (ladder: Rung[]) => boolean): boolean {
    return [this.#ofNone, ...this.#routes].some(({ ladder }) => test(ladder));
  }

  of({ route, url }: BatchTask): Ladder {
    const found =
      route === null
        ? this.#routes.find(({ matches }) => matches(url))
        : this.#routes.find(({ name }) => name === route);
    return found ?? this.#ofNone;
  }
}
