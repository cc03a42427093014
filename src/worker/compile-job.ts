import type { BatchJob } from '../core/batch/batch.ts';
import { SeineError } from '../core/errors.ts';
import { fetcherOfRoute, mayRender } from '../core/escalation/escalation.ts';
import { acceptLanguage } from '../core/identity/browser-headers.ts';
import { defaultUserAgent } from '../core/identity/identity.ts';
import type { BrowserSpec } from '../core/job-schema/browser.ts';
import {
  type JobSpec,
  MEDIA_ROUTE,
  MESSAGES_ROUTE,
  type RouteSpec,
  SITEMAP_ROUTE,
} from '../core/job-schema/job.ts';
import { BoundedMap } from '../core/lru.ts';
import { compileTypes } from '../core/media/media-file.ts';
import { suggestion } from '../core/text/nearest-name.ts';
import { compilePatterns } from '../core/url/pattern.ts';
import { compileFollow } from '../core/url/scope.ts';
import type { CompiledJob, CompiledRoute } from './job/compiled-job.ts';
import { LinkMemory } from './job/link-memory.ts';
import { CODE_NAMES, type JobHandlers } from './job/route-code.ts';
import { LinkSelectors } from './links/discover-links.ts';
import { compilePagination } from './links/paginate.ts';
import { compileMedia } from './media/find-media.ts';
import { compileReader, demandsFields } from './records/read-records.ts';

/** What a browser does where nothing is said. */
const PLAIN_RENDER = { actions: [], block: [], pdf: false, capture: [] };

/** Pages have loaded before their scripts have got their data, or before a check of the browser is over. */
function renderOf(route: RouteSpec): BrowserSpec {
  const settings = route.browser ?? PLAIN_RENDER;
  return { waitUntil: 'idle', ...settings };
}

const NEVER = () => false;
const BUILT_IN = {
  matches: NEVER,
  read: null,
  code: null,
  findMedia: null,
  paginate: null,
  follow: false,
  render: null,
  isAuto: false,
  proves: false,
} as const;
const BUILT_IN_ROUTES: CompiledRoute[] = [
  { ...BUILT_IN, name: SITEMAP_ROUTE, kind: 'sitemap' },
  { ...BUILT_IN, name: MEDIA_ROUTE, kind: 'media' },
  { ...BUILT_IN, name: MESSAGES_ROUTE, kind: 'messages' },
];

/** Waits only for libraries that few jobs need. */
export async function compileJob(spec: JobSpec, handlers: JobHandlers): Promise<CompiledJob> {
  const routes: CompiledRoute[] = [];
  for (const route of spec.routes) {
    routes.push({
      name: route.name,
      kind: route.kind,
      matches: route.match ? compilePatterns(route.match) : () => true,
      read: await compileReader(route, handlers.get(route.name) ?? {}),
      code: nameOfCode(route.name, handlers),
      findMedia: route.media.length > 0 ? compileMedia(route.media, route.name, spec.url) : null,
      paginate: route.paginate ? await compilePagination(route.paginate, route.name) : null,
      follow: route.follow,
      render: mayRender(route) ? renderOf(route) : null,
      isAuto: fetcherOfRoute(route) === 'auto',
      proves: demandsFields(route),
    });
  }
  const names = new Set(routes.map((route) => route.name));
  for (const [index, { name }] of routes.entries())
    if (routes.findIndex((route) => route.name === name) < index)
      throw new SeineError(`two routes have the same name: ${name}`, { written: name });
  for (const rule of spec.follow) {
    for (const name of [rule.route, rule.from]) {
      if (name !== undefined && !names.has(name))
        throw new SeineError(
          `a follow rule uses the unknown route '${name}'${suggestion(name, [...names])}`,
          {
            written: name,
          },
        );
    }
  }
  checkMediaRoutes(spec);
  const follow = spec.follow.map(compileFollow);
  return {
    spec,
    routes: [...routes, ...BUILT_IN_ROUTES],
    follow,
    linkSelectors: new LinkSelectors(follow, spec.politeness.nofollow === 'skip'),
    headers: {
      'user-agent': spec.identity.userAgent ?? defaultUserAgent(spec.identity.contact),
      accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'accept-language': spec.identity.languages
        ? acceptLanguage(spec.identity.languages)
        : 'en;q=0.9,*;q=0.5',
      ...Object.fromEntries(
        Object.entries(spec.identity.headers).map(([name, value]) => [name.toLowerCase(), value]),
      ),
    },
    takesMedia: compileTypes(spec.media.types),
    links: new LinkMemory(),
  };
}

function nameOfCode(route: string, handlers: JobHandlers): string | null {
  const code = handlers.get(route);
  if (!code) return null;
  return `the ${CODE_NAMES.find((name) => code[name]) ?? 'schema'} of route '${route}'`;
}

function checkMediaRoutes({ routes }: JobSpec): void {
  for (const rule of routes.flatMap(({ media }) => media)) {
    const wanted = typeof rule === 'string' ? undefined : rule.route;
    if (wanted !== undefined && !routes.some(({ name, kind }) => name === wanted && kind === 'media'))
      throw new SeineError(`a media rule uses '${wanted}', which is not a route of kind media`, {
        written: wanted,
      });
  }
}

const COMPILED_MAX = 16;

/** Compiled jobs by spec; an epoch change clears what links were reported. */
export class JobCache {
  readonly #jobs = new BoundedMap<string, CompiledJob>(COMPILED_MAX);
  readonly #loadHandlers: (bundle: string | null) => Promise<JobHandlers>;

  readonly #forbidsPrivate: boolean;

  /** `forbidsPrivate`: this worker dials no private address, whatever a job says. */
  constructor(
    loadHandlers: (bundle: string | null) => Promise<JobHandlers>,
    options: { forbidsPrivate?: boolean } = {},
  ) {
    this.#loadHandlers = loadHandlers;
    this.#forbidsPrivate = options.forbidsPrivate ?? false;
  }

  async get(job: BatchJob): Promise<CompiledJob> {
    const key = `${job.id} ${job.specHash}`;
    let compiled = this.#jobs.get(key);
    if (!compiled) {
      const handlers = await this.#loadHandlers(job.bundle);
      const spec = this.#forbidsPrivate ? { ...job.spec, allowPrivate: false } : job.spec;
      compiled = await compileJob(spec, handlers);
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
