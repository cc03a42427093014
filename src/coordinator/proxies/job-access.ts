import { isIP } from 'node:net';
import { SeineError } from '../../core/errors.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { parseLoginState } from '../../core/job-schema/login-state.ts';
import type { PoolSpec, ProxyListRef, SecretUse } from '../../core/job-schema/proxies.ts';
import { isLocalName, parseCredentials, parseProxyList, secretsOfProxy } from '../../core/proxies/proxy.ts';
import { type ProxyPool, proxiesIn } from '../../core/proxies/proxy-pool.ts';
import type { AddressCheck } from '../../core/url/address-guard.ts';

/** What a job needs from access and only refers to: read when a run starts, kept in memory, written down nowhere. */
export interface JobAccess {
  pools: ProxyPool[];
  apiKey: string | null;
  /** By origin and name. */
  headers: Record<string, Record<string, string>>;
  /** What browsers start with. */
  loginState: string | null;
  /** Everything that must not be seen, for whoever writes messages. */
  secrets: string[];
}

export type ReadSecret = (ref: ProxyListRef, use: SecretUse) => Promise<string>;

/** Throws a SeineError where something is missing or makes no sense; it never quotes what was read. */
export async function loadJobAccess(
  spec: Pick<JobSpec, 'proxies' | 'api' | 'identity' | 'login'>,
  read: ReadSecret,
): Promise<JobAccess> {
  const pools: ProxyPool[] = [];
  for (const [name, pool] of Object.entries(spec.proxies?.pools ?? {}))
    pools.push(await loadPool(name, pool, read));
  const apiKey = spec.api?.key ? (await read(spec.api.key, 'anywhere')).trim() : null;
  const headers: JobAccess['headers'] = {};
  for (const [origin, refs] of Object.entries(spec.identity.secretHeaders ?? {})) {
    const own: Record<string, string> = Object.create(null);
    for (const [name, ref] of Object.entries(refs))
      own[name] = headerValue(name, await read(ref, 'anywhere'));
    headers[new URL(origin).origin] = own;
  }
  const login = spec.login ? parseLoginState(await read(spec.login.state, 'own-place')) : null;
  const secrets = [
    ...pools.flatMap(({ proxies, all = proxies }) => all.flatMap(secretsOfProxy)),
    ...Object.values(headers).flatMap((own) => Object.values(own)),
    ...(apiKey === null ? [] : [apiKey]),
    ...(login?.secrets ?? []),
  ];
  return { pools, apiKey, headers, loginState: login?.json ?? null, secrets };
}

function headerValue(name: string, text: string): string {
  const value = text.trim();
  if (/^[\t\x20-\x7e]+$/.test(value)) return value;
  throw new SeineError(`the secret for the header ${name} must be one line of plain text`);
}

async function loadPool(name: string, spec: PoolSpec, read: ReadSecret): Promise<ProxyPool> {
  const { from, country } = spec;
  const place = `the list of pool '${name}'`;
  const isInline = 'list' in from;
  const text = isInline ? from.list.join('\n') : await read(from, 'own-place');
  const credentials =
    isInline && from.credentials ? parseCredentials(await read(from.credentials, 'anywhere')) : null;
  const all = parseProxyList(text, place, credentials);
  const proxies = proxiesIn(all, country);
  if (proxies.length === 0) {
    const where = all.length > 0 ? ` in ${country?.toUpperCase()}` : '';
    throw new SeineError(`pool '${name}' has no proxies${where}`, {
      hint: 'add proxies to its list, one per line',
    });
  }
  return { name, spec, proxies, all };
}

/**
 * Throws for proxies and APIs that workers would refuse at every connection, as far as their names tell; what the others
 * resolve to is checked when they are dialled.
 */
export function checkServices(
  { api, notify = [] }: Pick<JobSpec, 'api' | 'notify'>,
  pools: readonly ProxyPool[],
  isAllowed: AddressCheck,
): void {
  if (isAllowed === null) return;
  const isRefused = (host: string) => (isIP(host) === 0 ? isLocalName(host) : !isAllowed(host));
  for (const { name, proxies, all = proxies } of pools) {
    const refused = all.find(({ host }) => isRefused(host));
    if (refused) throw privateService(`the proxy ${refused.id} of pool '${name}'`);
  }
  for (const template of [api?.url, api?.batch?.submit, api?.batch?.poll]) {
    const url = URL.parse(template?.replace(/[{}]/g, '') ?? '');
    if (url && isRefused(url.hostname.replace(/^\[|\]$/g, '')))
      throw privateService('the scraping API of the job');
  }
  for (const { url } of notify) {
    const place = typeof url === 'string' ? URL.parse(url) : null;
    if (place && isRefused(place.hostname.replace(/^\[|\]$/g, '')))
      throw privateService('the URL that the job notifies');
  }
}

function privateService(what: string): SeineError {
  return new SeineError(`${what} has a private address`, {
    hint: 'SEINE_ALLOW_PRIVATE=never refuses it; set SEINE_ALLOW_PRIVATE=job if jobs may use the own network',
  });
}
