import type { BatchJob } from '../core/batch.ts';
import { SeineError } from '../core/errors.ts';
import { defaultUserAgent } from '../core/identity.ts';
import type { JobSpec } from '../core/job.ts';
import { compilePatterns } from '../core/pattern.ts';
import { type CompiledFollow, compileFollow } from '../core/scope.ts';
import { compileFields, type Extractor } from './extract.ts';
import { LinkMemory } from './link-memory.ts';
import type { Handler } from './page.ts';

export interface CompiledRoute {
  name: string;
  matches: (url: string) => boolean;
  extract: Extractor | null;
  handler: Handler | null;
  follow: boolean;
}

/** A job as a worker uses it; made once for each spec. */
export interface CompiledJob {
  spec: JobSpec;
  routes: CompiledRoute[];
  follow: CompiledFollow[];
  headers: Record<string, string>;
  links: LinkMemory;
}

export type Handlers = ReadonlyMap<string, Handler>;

export function compileJob(spec: JobSpec, handlers: Handlers): CompiledJob {
  const routes = spec.routes.map((route) => ({
    name: route.name,
    matches: route.match ? compilePatterns(route.match) : () => true,
    extract: route.select ? compileFields(route.select) : null,
    handler: handlers.get(route.name) ?? null,
    follow: route.follow,
  }));
  const names = new Set(routes.map((route) => route.name));
  if (names.size < routes.length) throw new SeineError('two routes of the job have the same name');
  for (const rule of spec.follow) {
    for (const name of [rule.route, rule.from]) {
      if (name !== undefined && !names.has(name))
        throw new SeineError(`a follow rule names the route '${name}', which does not exist`);
    }
  }
  return {
    spec,
    routes,
    follow: spec.follow.map(compileFollow),
    headers: {
      'user-agent': spec.identity.userAgent ?? defaultUserAgent(spec.identity.contact),
      accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'accept-language': 'en;q=0.9,*;q=0.5',
      ...Object.fromEntries(
        Object.entries(spec.identity.headers).map(([name, value]) => [name.toLowerCase(), value]),
      ),
    },
    links: new LinkMemory(),
  };
}

export function routeOf(job: CompiledJob, url: string, named: string | null): CompiledRoute | null {
  if (named !== null) return job.routes.find((route) => route.name === named) ?? null;
  return job.routes.find((route) => route.matches(url)) ?? null;
}

const COMPILED_MAX = 16;

/** Compiled jobs by spec; an epoch change clears what links were reported. */
export class JobCache {
  readonly #jobs = new Map<string, CompiledJob>();
  readonly #loadHandlers: (bundle: string | null) => Promise<Handlers>;

  constructor(loadHandlers: (bundle: string | null) => Promise<Handlers>) {
    this.#loadHandlers = loadHandlers;
  }

  async get(job: BatchJob): Promise<CompiledJob> {
    const key = `${job.id} ${job.specHash}`;
    let compiled = this.#jobs.get(key);
    if (!compiled) {
      const handlers = await this.#loadHandlers(job.bundle);
      compiled = compileJob(job.spec, handlers);
      if (this.#jobs.size >= COMPILED_MAX) this.#jobs.clear();
      this.#jobs.set(key, compiled);
    }
    return compiled.links.epoch === job.epoch ? compiled : this.#renewed(key, compiled, job.epoch);
  }

  /** Batches that still run keep the old memory: what they found under it may be lost, and is found again. */
  #renewed(key: string, compiled: CompiledJob, epoch: string): CompiledJob {
    const renewed = { ...compiled, links: new LinkMemory(epoch) };
    this.#jobs.set(key, renewed);
    return renewed;
  }
}
