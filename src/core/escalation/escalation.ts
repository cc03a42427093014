/**
 * Escalation: how a task is fetched, and what is tried next when a site refuses it.
 *
 * Fetch method   how one task is fetched: fetcher, header style, identity and proxy pool. The coordinator chooses it; a
 *                task without one goes over HTTP, with the honest headers of the job, from the worker's own address.
 * Level          a fetch method without its identity. The levels of a route are what the job allows, from cheap to dear.
 *                A job that asks for nothing has one level: nothing that looks like a browser is ever sent unless
 *                `identity.mode`, or the route's `fetcher` or `escalate`, says so.
 * Score          how a level fared lately, for a host and for a URL template (`score.ts`).
 * Verdict        what an outcome says about its level: answered, refused, forbidden, lacking or scripts.
 *
 * | verdict              | next                                                                                |
 * |----------------------|-------------------------------------------------------------------------------------|
 * | answered             | the level works; now and then a task tries a cheaper one                            |
 * | refused              | the task moves one level up with its next attempt                                   |
 * | forbidden, lacking   | the same, but one level only where similar pages are answered                       |
 * | scripts              | the task moves to the level that renders, at once and without counting as an attempt |
 * | none (timeout, 5xx)  | the level stays: the trouble says nothing about it                                  |
 *
 * Where the job has `escalation.choose: cheapest`, a task takes the level with the lowest cost per success instead of the
 * lowest that works, and goes on with the next of them instead of the next higher one (`cheapest.ts`).
 *
 * The coordinator's half is `coordinator/escalation/`. Stored attempts and exports call the level `rung`.
 */

export const FETCHER_KINDS = ['http', 'impersonate', 'browser', 'api'] as const;
export type FetcherKind = (typeof FETCHER_KINDS)[number];
/** What a route may name: `auto` is http, and a browser for pages that are nothing without their scripts. */
export const ROUTE_FETCHERS = [...FETCHER_KINDS, 'auto'] as const;
type RouteFetcher = (typeof ROUTE_FETCHERS)[number];

/** How much of a browser's header set is sent; sites that refuse one sometimes take another. */
export type HeaderStyle = 'full' | 'simple' | 'minimal';

/** Which of the levels a task takes: the lowest that mostly works, or the one with the lowest cost per success. */
export const LEVEL_CHOOSING = ['lowest', 'cheapest'] as const;
type LevelChoosing = (typeof LEVEL_CHOOSING)[number];

/** What a refused request may be tried with next, from cheap to dear. */
export const ESCALATIONS = ['identity', 'impersonate', 'proxy', 'browser', 'api'] as const;
export type Escalation = (typeof ESCALATIONS)[number];

export interface EscalationLevel {
  /** Its place in the levels, from 0. */
  level: number;
  /** What it is in words: levels of different levelsByRoute that are the same way have the same. */
  methodName: string;
  fetcher: FetcherKind;
  headers: HeaderStyle;
  /** Looks like a browser: needs an identity. Otherwise the headers are the honest ones. */
  browserLike: boolean;
  /** Wants another identity than the levels below it. */
  otherIdentity: boolean;
  /** Name of the proxy pool; null asks from the worker's own address. */
  pool: string | null;
  /** The last one: for pages that need scripts, and never because a page was refused. */
  onlyForScripts?: true;
}

export interface FetchMethod {
  level: number;
  fetcher: FetcherKind;
  headers: HeaderStyle;
  /** Seeds a consistent browser identity, the same on every worker; null is the honest one. */
  identity: string | null;
  pool: string | null;
}

/** How a request was sent, for the log of attempts. No secrets: a proxy is named, never written out. */
export interface Via {
  rung: number;
  fetcher: FetcherKind;
  identity: string | null;
  /** Id of the proxy that was used, like `gate.example:8080#k3x9qa`. */
  proxy: string | null;
  /** What a remote scraping API took for it. */
  cost?: number;
}

/** The parts of a job and a route that decide the levels. */
export interface EscalationJob {
  identity: { mode?: 'honest' | 'browser' | undefined };
  escalation?: { choose?: LevelChoosing | undefined } | undefined;
  /** Pool for every request of the job; for a route with `proxy` among its escalations, only from that level on. */
  proxies?: { default?: string | undefined } | undefined;
}

export interface EscalationRoute {
  fetcher?: RouteFetcher | undefined;
  /** Its settings; a route that has them and names no fetcher wants a browser. */
  browser?: object | undefined;
  escalate?: readonly Escalation[] | undefined;
  /** Instead of the job's. */
  proxy?: string | null | undefined;
}

const HEADER_STYLES: readonly HeaderStyle[] = ['full', 'simple', 'minimal'];

/** What asks for the pages of a route, also where it does not say. */
export function fetcherOfRoute(route: EscalationRoute | null): RouteFetcher {
  if (route?.fetcher) return route.fetcher;
  return route?.browser && !route.escalate?.includes('browser') ? 'browser' : 'http';
}

/** Whether some page of the route may be fetched by a browser. */
export function mayRender(route: EscalationRoute): boolean {
  const fetcher = fetcherOfRoute(route);
  return fetcher === 'browser' || fetcher === 'auto' || Boolean(route.escalate?.includes('browser'));
}

/** The allowed levels in the order of their cost; each keeps what the levels below it added. */
export function escalationLevels(route: EscalationRoute | null, job: EscalationJob): EscalationLevel[] {
  const steps = new Set(route?.escalate);
  const pool = route?.proxy ?? job.proxies?.default ?? null;
  const asked = fetcherOfRoute(route);
  const isAuto = asked === 'auto';
  const base = isAuto ? 'http' : asked;
  const way: Omit<EscalationLevel, 'level' | 'methodName' | 'headers'> = {
    fetcher: base,
    browserLike: job.identity.mode === 'browser' || base === 'impersonate',
    otherIdentity: false,
    // The API asks from addresses of its own.
    pool: steps.has('proxy') || base === 'api' ? null : pool,
  };
  const levels: EscalationLevel[] = [];
  const add = (change: Partial<typeof way>, styles: readonly HeaderStyle[] = ['full']) => {
    Object.assign(way, change);
    for (const headers of styles)
      levels.push({ level: levels.length, methodName: wordsOf(way, headers), ...way, headers });
    way.otherIdentity = false;
  };
  // A browser and an API send headers of their own.
  const sendsOurs = base === 'http' || base === 'impersonate';
  add({}, way.browserLike && sendsOurs ? HEADER_STYLES : ['full']);
  if (steps.has('identity') && base !== 'api') {
    if (way.browserLike) add({ otherIdentity: true });
    else add({ browserLike: true }, sendsOurs ? HEADER_STYLES : ['full']);
  }
  if (steps.has('impersonate') && base === 'http') add({ fetcher: 'impersonate', browserLike: true });
  if (steps.has('proxy') && pool !== null) add({ pool });
  if ((isAuto || steps.has('browser')) && base !== 'browser' && base !== 'api') {
    // Through a proxy a browser costs many times what it costs without: whoever compares costs tries both.
    if (job.escalation?.choose === 'cheapest' && steps.has('proxy') && pool !== null) {
      add({ fetcher: 'browser', pool: null });
      way.pool = pool;
    }
    add({ fetcher: 'browser' });
    // Whoever pays an API to get in does not mind a browser that tries first.
    if (!steps.has('browser') && !steps.has('api')) levels.at(-1)!.onlyForScripts = true;
  }
  if (steps.has('api') && base !== 'api') add({ fetcher: 'api', pool: null });
  return levels;
}

function wordsOf(
  { fetcher, browserLike, otherIdentity, pool }: Omit<EscalationLevel, 'level' | 'methodName' | 'headers'>,
  headers: HeaderStyle,
): string {
  const look = browserLike ? headers : 'honest';
  return `${fetcher} ${look}${otherIdentity ? ' other' : ''}${pool === null ? '' : ` via ${pool}`}`;
}

/** Whether every task of the levels goes the plain way, so that none needs an fetch method. */
export function isPlain(levels: readonly EscalationLevel[]): boolean {
  const [only] = levels;
  return levels.length === 1 && only!.fetcher === 'http' && !only!.browserLike && only!.pool === null;
}

export function fetchMethodOf(
  { level, fetcher, headers, pool }: EscalationLevel,
  identity: string | null,
): FetchMethod {
  return { level, fetcher, headers, identity, pool };
}
