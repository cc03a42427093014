import { hash } from 'node:crypto';
import type { JobInput, JobSpec } from '../../../core/job-schema/job.ts';
import {
  isHttpUrl,
  isWebSitemap,
  type SourceObject,
  sourceObjectOf,
} from '../../../core/job-schema/source-name.ts';
import { BoundedMap } from '../../../core/lru.ts';
import { shownPool } from '../../../core/proxies/row-proxy.ts';
import type { SharedPool } from '../../../core/proxies/shared-pools.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import { canonicalJson } from '../../../core/values/canonical-json.ts';
import { readsSecrets } from '../../../job-file/check-job.ts';
import { hashOfSpec, parseJob } from '../../../job-file/parse-job.ts';
import type { Job, Store } from '../../../ports/store.ts';
import { isAdmin } from '../requests/callers.ts';
import type { BatchOptions } from '../requests/options.ts';
import { Problem } from '../requests/problems.ts';
import type { Caller } from '../requests/work.ts';

/** What anyone may use; more needs admin scope. */
const RATE_MAX = 4;
const KEPT_MAX = 10_000;
/** A scrape is waited for: three tries within seconds, and not a day later. */
const RETRY = { attempts: 3, baseMs: 500, maxMs: 10_000 };
/** One scrape is a batch: pages that fail one after the other say nothing about the next. */
const BATCHES_NEVER = 1_000_000_000;

type FetchOptions = Pick<
  BatchOptions,
  | 'use_js_render'
  | 'formats'
  | 'select'
  | 'schema'
  | 'wait_for'
  | 'headers'
  | 'timeout'
  | 'robots'
  | 'rate'
  | 'proxy_pool'
  | 'country'
>;

/** Names of jobs, and with them their records, belong to one key. */
export function tenantName({ keyId }: Caller, name: string): string {
  return keyId === null ? name : `${keyId}.${name}`.slice(0, 64);
}

/** What the operator lets requests use. */
interface ServerRules {
  allowPrivate: boolean;
  proxyPools: ReadonlyMap<string, SharedPool>;
}

/** The job that fetches pages with these options. */
export async function specOf(
  options: FetchOptions & { deadline?: number | undefined; max_cost_usd?: number | undefined },
  name: string,
  { allowPrivate, proxyPools }: ServerRules,
  caller: Caller,
): Promise<JobSpec> {
  checkRights(options, caller);
  const { formats, select, schema, wait_for: waitFor } = options;
  const screenshot = formats.includes('screenshot');
  const pdf = formats.includes('pdf');
  const renders = options.use_js_render || screenshot || pdf || waitFor !== undefined;
  const action = typeof waitFor === 'number' ? { waitMs: waitFor } : { waitFor: waitFor ?? '' };
  const definition: JobInput = {
    name,
    keepOpen: true,
    routes: [
      {
        name: 'page',
        ...(select ? { select } : {}),
        ...(schema ? { schema } : {}),
        ...(renders
          ? {
              fetcher: 'browser',
              browser: { screenshot, pdf, actions: waitFor === undefined ? [] : [action] },
            }
          : { fetcher: 'http' }),
      },
    ],
    redirects: 'follow',
    politeness: { rate: options.rate, robots: options.robots, adaptive: options.rate !== 'max' },
    identity: { headers: options.headers ?? {} },
    ...proxiesOf(options, proxyPools),
    timeouts: { taskMs: options.timeout * 1_000 },
    limits: {
      ...(options.deadline === undefined ? {} : { seconds: options.deadline }),
      ...(options.max_cost_usd === undefined ? {} : { dollars: options.max_cost_usd }),
    },
    allowPrivate,
  };
  checkSize(definition);
  return (await parseJob(definition, 'options', name)).spec;
}

/** A pool that the operator shares; where its list is stays with the server. */
function proxiesOf(
  { proxy_pool: pool, country }: FetchOptions,
  proxyPools: ServerRules['proxyPools'],
): Pick<JobInput, 'proxies'> {
  if (pool === undefined && country === undefined) return {};
  if (pool === undefined) throw new Problem('bad-option', 'country: needs proxy_pool');
  const shared = proxyPools.get(pool);
  if (!shared) {
    const meant = suggestion(pool, [...proxyPools.keys()]);
    throw new Problem('bad-option', `proxy_pool: the server has no pool ${shownPool(pool)}${meant}`);
  }
  const from = { shared: pool };
  return {
    proxies: {
      pools: { [pool]: { type: shared.type, from, ...(country ? { country } : {}) } },
      default: pool,
    },
  };
}

/** A definition is checked selector by selector, and travels in every batch of its job; the list of its URLs does not. */
const DEFINITION_CHARS_MAX = 128 * 1024;

/** Before it is looked at. */
export function checkSize(definition: object): void {
  if (JSON.stringify({ ...definition, sources: [] }).length > DEFINITION_CHARS_MAX)
    throw new Problem(
      'too-large-body',
      'the definition of a job, without its sources, is larger than 128 KB',
    );
}

function checkRights({ robots, rate }: FetchOptions, caller: Caller): void {
  if (isAdmin(caller)) return;
  if (!robots) throw new Problem('forbidden', 'to ignore robots.txt needs admin scope');
  if (rate === 'max' || rate > RATE_MAX)
    throw new Problem('forbidden', `a rate of more than ${RATE_MAX} needs admin scope`);
}

/** What a whole job of a request may not have: what is the operator's, or runs as code. */
export function checkJobRights(spec: JobSpec, caller: Caller, allowPrivate: boolean): void {
  const refuse = (detail: string): never => {
    throw new Problem('not-allowed', detail);
  };
  if (readsSecrets(spec))
    refuse('secrets of the server ({env}, {file}, {secret}) are not for jobs of the API');
  for (const source of spec.sources.map(sourceObjectOf)) {
    if ('query' in source) refuse('sources: no SQL in jobs of the API');
    if ('websocket' in source) refuse('sources: no WebSockets in jobs of the API');
    if (!isOnTheWeb(source))
      refuse('sources: only http and https URLs in jobs of the API, no files and no S3');
  }
  if (spec.login) refuse('login: not in jobs of the API');
  if (spec.sink) refuse('sink: not in jobs of the API');
  if (spec.notify) refuse('notify: not in jobs of the API, which have webhooks');
  if (spec.allowPrivate && !allowPrivate) refuse('allowPrivate: the server runs without --allow-private');
  if (spec.privateServices && !allowPrivate)
    refuse('privateServices: the server runs without --allow-private');
  if (isAdmin(caller)) return;
  const { politeness } = spec;
  const rates = [politeness.rate, ...Object.values(politeness.hosts).map(({ rate }) => rate)];
  if (!politeness.robots) throw new Problem('forbidden', 'to ignore robots.txt needs admin scope');
  if (rates.some((rate) => rate !== undefined && (rate === 'max' || rate > RATE_MAX)))
    throw new Problem('forbidden', `a rate of more than ${RATE_MAX} needs admin scope`);
}

/** The job as it is run for whoever sent it: what it names is dialled under the same rule as its pages. */
export function guardedSpec(spec: JobSpec, allowPrivate: boolean): JobSpec {
  return allowPrivate ? spec : { ...spec, privateServices: false };
}

/** Read over http; what is neither a URL nor a sitemap on the web would be a file of this machine, or the operator's S3. */
function isOnTheWeb(source: SourceObject): boolean {
  if ('url' in source) return true;
  if ('file' in source) return isHttpUrl(source.file);
  return 'sitemap' in source && isWebSitemap(source.sitemap);
}

/** Pages that are added are fetched. */
function takesMore({ state, requestedState }: Job): boolean {
  return requestedState === 'run' && (state === 'running' || state === 'waiting');
}

interface ScrapeJobsContext extends ServerRules {
  store: Pick<Store, 'jobs'>;
  now(): number;
}

/**
 * Single scrapes go into jobs that are kept open, one for each caller and set of options: a job and a coordinator for each
 * page would cost more than the page.
 */
export class ScrapeJobs {
  readonly #context: ScrapeJobsContext;
  readonly #jobs = new BoundedMap<string, Promise<Job>>(KEPT_MAX);

  constructor(context: ScrapeJobsContext) {
    this.#context = context;
  }

  /** Scrapes with the same key go into the same job. */
  keyOf(caller: Caller, options: FetchOptions): string {
    const { use_js_render, select, schema, wait_for, headers, timeout, robots, rate, formats } = options;
    const { proxy_pool, country } = options;
    const pictures = formats.filter((format) => format === 'screenshot' || format === 'pdf').sort();
    const page = { use_js_render, select, schema, wait_for, headers, timeout, robots, rate, pictures };
    const wanted = { ...page, proxy_pool, country };
    checkRights(options, caller);
    const text = canonicalJson([caller.keyId, JSON.parse(JSON.stringify(wanted))]);
    return hash('sha256', text, 'hex').slice(0, 20);
  }

  async of(key: string, caller: Caller, options: FetchOptions): Promise<Job> {
    const known = this.#jobs.get(key);
    const usable = known ? await this.#usable(known) : null;
    if (usable) return usable;
    // Of scrapes that find it gone at the same time, the first one opens another.
    if (this.#jobs.get(key) === known) {
      const opened = this.#open(key, caller, options);
      this.#jobs.set(key, opened);
      opened.catch(() => this.#jobs.delete(key));
    }
    return this.#jobs.get(key) ?? this.#open(key, caller, options);
  }

  /** As it is now: it may have been stopped, cancelled or deleted, also by a command or by another server. */
  async #usable(opened: Promise<Job>): Promise<Job | null> {
    const job = await this.#context.store.jobs.byId((await opened).id);
    return job && takesMore(job) ? job : null;
  }

  async #open(key: string, caller: Caller, options: FetchOptions): Promise<Job> {
    const { store, now } = this.#context;
    const name = tenantName(caller, `scrape-${key}`);
    // Many scrapes share the job: what one of them may cost is no limit of all.
    const made = await specOf({ ...options, max_cost_usd: undefined }, name, this.#context, caller);
    const spec: JobSpec = { ...made, retry: RETRY, breaker: { ...made.breaker, jobBatches: BATCHES_NEVER } };
    const specHash = hashOfSpec(spec, null);
    const last = await store.jobs.find(name);
    if (last?.name === name && last.specHash === specHash && takesMore(last)) return last;
    const code = { spec, specHash, bundle: null, file: null };
    return store.jobs.create({ ...code, name, now: now(), owner: caller.keyId });
  }
}
