import { resolve } from 'node:path';
import { SeineError } from '../core/errors.ts';
import { fetcherOfRoute, mayRender } from '../core/escalation/escalation.ts';
import type { JobSpec, MediaRule, RouteSpec } from '../core/job-schema/job.ts';
import type { SecretRef } from '../core/job-schema/proxies.ts';
import { isRemote } from '../core/job-schema/source-name.ts';
import { LIMITS } from '../core/limits.ts';
import { shownPool } from '../core/proxies/row-proxy.ts';
import { suggestion } from '../core/text/nearest-name.ts';
import { hideCredentials } from '../core/text/redact.ts';
import type { RouteCode } from '../worker/job/route-code.ts';

/** What is written into a job is stored and shown: a URL with a password has no place there. */
export function checkSources({ sources, keepOpen }: Pick<JobSpec, 'sources' | 'keepOpen'>): void {
  if (sources.length === 0 && !keepOpen)
    throw new SeineError('the job has no sources, so there is nothing to fetch', {
      hint: 'name a URL, file or sitemap, or set `keepOpen` for a job that gets its URLs later',
    });
  const paths = sources.map((source) =>
    typeof source === 'string' ? source : 'file' in source ? source.file : '',
  );
  const strange = paths.find((path) => /^[a-z][a-z0-9+.-]*:\/\//i.test(path) && !isRemote(path));
  if (strange !== undefined)
    throw new SeineError(`sources: not an http(s) URL: ${hideCredentials(strange)}`, { written: strange });
  checkUrls('sources', namesOf(sources), 'put an Authorization header into `identity.secretHeaders` instead');
}

/** The same holds for what a job names besides its pages. */
export function checkServiceUrls({ api, notify = [] }: Pick<JobSpec, 'api' | 'notify'>): void {
  const { url, batch } = api ?? {};
  checkUrls(
    'api',
    [url, batch?.submit, batch?.poll],
    'put the secret into `api.key`, and `{key}` into the URL or a header',
  );
  checkUrls(
    'notify',
    notify.map((each) => each.url),
    'put the whole URL into a secret: `url: { env: … }`',
  );
}

function namesOf(sources: JobSpec['sources']): unknown[] {
  return sources.flatMap((source) => (typeof source === 'string' ? [source] : Object.values(source)));
}

function checkUrls(where: string, names: readonly unknown[], hint: string): void {
  if (names.some((name) => typeof name === 'string' && hideCredentials(name) !== name))
    throw new SeineError(
      `${where}: a URL contains a user name or password, which would be stored in plain text`,
      { hint },
    );
}

/** Finds routes that count on proxies or a remote scraping API which the job does not have. */
export function checkAccess({ routes, proxies, api, login }: JobSpec): void {
  if (login && !routes.some(mayRender))
    throw new SeineError('the job has a saved login, but no route uses a browser', {
      hint: 'set `fetcher: browser` or `auto` in a route',
    });
  for (const { name, proxy, fetcher, escalate } of routes) {
    const pool = proxy ?? proxies?.default;
    if (proxy !== undefined && !(proxies && Object.hasOwn(proxies.pools, proxy)))
      throw new SeineError(
        `route '${name}' uses the unknown proxy pool ${shownPool(proxy)}${suggestion(proxy, Object.keys(proxies?.pools ?? {}))}`,
        { written: proxy },
      );
    if (escalate.includes('proxy') && pool === undefined)
      throw new SeineError(`route '${name}' escalates to proxies, but has no proxy pool`, {
        hint: 'set `proxy` in the route or `proxies.default` in the job',
      });
    if ((fetcher === 'api' || escalate.includes('api')) && !api)
      throw new SeineError(`route '${name}' uses a remote scraping API, but the job has no \`api\``);
  }
}

/** What an address may do is learned from answers to requests that came from it, under a rate for the whole host. */
export function checkAddresses({ politeness, proxies }: Pick<JobSpec, 'politeness' | 'proxies'>): void {
  const { perAddress, adaptive, rate } = politeness;
  if (!perAddress) return;
  if (!adaptive)
    throw new SeineError('`politeness.perAddress` learns rates, but `politeness.adaptive` is off');
  if (rate === 'max')
    throw new SeineError('`politeness.perAddress` needs a `rate`: it is the limit of the whole host', {
      hint: 'set `politeness.rate` to the number of requests per second that the host may get from all addresses',
    });
  if (proxies)
    throw new SeineError(
      '`politeness.perAddress` is for requests from our own addresses, but the job has proxies',
      {
        hint: 'proxies have paces of their own: leave out `perAddress`',
      },
    );
}

type WithSecrets = Pick<JobSpec, 'proxies' | 'api' | 'identity' | 'login' | 'notify'>;

/** Files of secrets are meant from where the job file is, also when the job is resumed from elsewhere. */
export function anchorSecrets<T extends WithSecrets>(spec: T, dir: string): T {
  return mapSecrets(spec, (ref) => ('file' in ref ? { file: resolve(dir, ref.file) } : ref));
}

/** Whether the job reads anything of the machine it runs on: variables, files, mounted secrets. */
export function readsSecrets(spec: WithSecrets): boolean {
  let found = false;
  mapSecrets(spec, (ref) => {
    found = true;
    return ref;
  });
  return found;
}

/** Every place of a job where a secret is referred to is here. */
function mapSecrets<T extends WithSecrets>(spec: T, change: (ref: SecretRef) => SecretRef): T {
  const { proxies, api, identity, login, notify } = spec;
  const headers = mapValues(identity.secretHeaders ?? {}, (refs) => mapValues(refs, change));
  const pools = mapValues(proxies?.pools ?? {}, (pool) => {
    const { from } = pool;
    if ('shared' in from) return pool;
    if (!('list' in from)) return { ...pool, from: change(from) };
    const { credentials } = from;
    return { ...pool, from: credentials ? { ...from, credentials: change(credentials) } : from };
  });
  return {
    ...spec,
    ...(proxies ? { proxies: { ...proxies, pools } } : {}),
    ...(identity.secretHeaders ? { identity: { ...identity, secretHeaders: headers } } : {}),
    ...(api?.key ? { api: { ...api, key: change(api.key) } } : {}),
    ...(notify
      ? {
          notify: notify.map((each) =>
            typeof each.url === 'object' ? { ...each, url: change(each.url) } : each,
          ),
        }
      : {}),
    ...(login ? { login: { state: change(login.state) } } : {}),
  };
}

function mapValues<T, R>(record: Record<string, T>, change: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

/** Finds what a route says in vain. Only when a job is loaded: a job that runs on without its code must still run. */
export function checkRoute(route: RouteSpec, code: RouteCode): void {
  const captures = route.browser?.capture ?? [];
  const makesRecords =
    route.select !== undefined || route.markdown || code.handler !== undefined || captures.length > 0;
  if (!makesRecords) checkIdle(route, code);
  checkNames(route, code);
  checkBrowser(route);
}

/** Pictures and captured data are there for every page of a route, or for none. */
function checkBrowser(route: RouteSpec): void {
  const { name, browser, kind } = route;
  const fetcher = fetcherOfRoute(route);
  if ((fetcher === 'browser' || fetcher === 'auto') && kind !== 'page')
    throw new SeineError(`route '${name}' has kind ${kind}, which does not use a browser`);
  if (!browser) return;
  if (!mayRender(route))
    throw new SeineError(`route '${name}' has \`browser\`, but its fetcher is ${fetcher}`, {
      hint: 'set `fetcher` to browser or auto, or leave it out',
    });
  const wanted = [
    ...(browser.screenshot ? ['screenshot'] : []),
    ...(browser.pdf ? ['pdf'] : []),
    ...(browser.capture.length > 0 ? ['capture'] : []),
  ];
  if (wanted.length > 0 && fetcher !== 'browser')
    throw new SeineError(
      `route '${name}' has ${wanted.join(' and ')}, but only some of its pages use a browser`,
      { hint: 'set `fetcher: browser`' },
    );
}

/** Steps for records that are never made. */
function checkIdle(route: RouteSpec, code: RouteCode): void {
  const given = [
    ...(route.key === undefined ? [] : ['key']),
    ...(route.schema === undefined ? [] : ['schema']),
    ...Object.keys(code),
  ];
  if (given.length === 0) return;
  throw new SeineError(
    `route '${route.name}' has ${given.join(' and ')}, but no select, markdown or handler to make records`,
  );
}

/** Only where nothing but selectors makes records is it known which fields they have. */
function checkNames(route: RouteSpec, { handler, clean, schema }: RouteCode): void {
  if (handler || clean || schema) return;
  const names = [
    ...Object.keys(route.select ?? {}),
    ...(route.markdown ? ['title', 'markdown'] : []),
    ...(route.browser?.capture ?? []).map((capture) => capture.name),
  ];
  const fieldOf = (rule: MediaRule) => (typeof rule === 'string' ? [] : (rule.field ?? []));
  for (const [what, fields] of [
    ['the key', [route.key ?? []].flat()],
    ['a media rule', route.media.flatMap(fieldOf)],
  ] as const) {
    const unknown = fields.find((field) => !names.includes(field));
    if (unknown !== undefined)
      throw new SeineError(
        `${what} of route '${route.name}' uses the unknown field '${unknown}'${suggestion(unknown, names)}`,
        { written: unknown },
      );
  }
}

/** Headers that tell a site who sends the request: Authorization, Cookie, X-Api-Key, X-Auth-Token and their kin. */
const CREDENTIAL =
  /^cookie2?$|(?:^|[-_])(?:auth|authorization|api[-_]?key|access[-_]?key|subscription[-_]?key|token|secret|password)(?:$|[-_])/i;

/** Headers of the job go to every host that it is led to, and are stored: credentials have no place among them. */
export function checkHeaders({ identity, api }: Pick<JobSpec, 'identity' | 'api'>): void {
  const secret = Object.values(identity.secretHeaders ?? {}).flatMap((own) => Object.keys(own));
  const plain = [...Object.entries(identity.headers), ...Object.entries(api?.headers ?? {})];
  for (const name of [...plain.map(([given]) => given), ...secret])
    if (!HEADER_NAME.test(name))
      throw new SeineError(`${JSON.stringify(name.slice(0, 80))} is not a valid header name`);
  const [broken] = plain.find(([, value]) => !HEADER_VALUE.test(value)) ?? [];
  if (broken !== undefined)
    throw new SeineError(`the value of the header ${broken} must be one line of plain text`);
  const open = Object.keys(identity.headers).find((name) => CREDENTIAL.test(name));
  if (open !== undefined)
    throw new SeineError(`identity.headers: ${open} would be sent to every host of the job`, {
      hint: 'put it into `identity.secretHeaders`, under its origin',
    });
}

/** As RFC 9110 has them; what is sent otherwise is refused by each fetcher in its own way, for every page. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A job that no schema could read: nested without end, or with a name that would be lost. */
export function checkShape(definition: unknown, origin: string): void {
  const seen = new Set<object>();
  let level: unknown[] = [definition];
  for (let depth = 0; level.length > 0; depth++) {
    const below: unknown[] = [];
    for (const value of level) {
      if (typeof value !== 'object' || value === null || seen.has(value)) continue;
      if (depth > LIMITS.dataNestingMax)
        throw new SeineError(`${origin}: it is nested deeper than ${LIMITS.dataNestingMax} levels`);
      seen.add(value);
      if (Object.hasOwn(value, '__proto__'))
        throw new SeineError(`${origin}: __proto__ cannot be used as a name`);
      below.push(...Object.values(value));
    }
    level = below;
  }
}
