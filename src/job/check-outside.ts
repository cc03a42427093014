import { resolve } from 'node:path';
import { SeineError } from '../core/errors.ts';
import { mayRender } from '../core/escalation/escalation.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import type { SecretRef } from '../core/job-schema/proxies.ts';
import { hideCredentials } from '../core/text/redact.ts';

/** What is written into a job is stored and shown: a URL with a password has no place there. */
export function checkSources({ sources }: Pick<JobSpec, 'sources'>): void {
  const names = sources.flatMap((source) => (typeof source === 'string' ? [source] : Object.values(source)));
  const open = names.find((name) => typeof name === 'string' && hideCredentials(name) !== name);
  if (open !== undefined)
    throw new SeineError(
      'sources: a URL contains a user name or password, which would be stored in plain text',
      {
        hint: 'put an Authorization header into `identity.secretHeaders` instead',
      },
    );
}

/** Finds routes that count on proxies or a remote scraping API which the job does not have. */
export function checkOutside({ routes, proxies, api, login }: JobSpec): void {
  if (login && !routes.some(mayRender))
    throw new SeineError('the job has a saved login, but no route uses a browser', {
      hint: 'set `fetcher: browser` or `auto` in a route',
    });
  for (const { name, proxy, fetcher, escalate } of routes) {
    const pool = proxy ?? proxies?.default;
    if (proxy !== undefined && !(proxies && Object.hasOwn(proxies.pools, proxy)))
      throw new SeineError(`route '${name}' uses the unknown proxy pool '${proxy}'`);
    if (escalate.includes('proxy') && pool === undefined)
      throw new SeineError(`route '${name}' escalates to proxies, but has no proxy pool`, {
        hint: 'set `proxy` in the route or `proxies.default` in the job',
      });
    if ((fetcher === 'api' || escalate.includes('api')) && !api)
      throw new SeineError(`route '${name}' uses a remote scraping API, but the job has no \`api\``);
  }
}

/** Files of secrets are meant from where the job file is, also when the job is resumed from elsewhere. */
export function anchorSecrets<T extends Pick<JobSpec, 'proxies' | 'api' | 'identity' | 'login'>>(
  spec: T,
  dir: string,
): T {
  const anchor = (ref: SecretRef): SecretRef => ('file' in ref ? { file: resolve(dir, ref.file) } : ref);
  const { proxies, api, identity, login } = spec;
  const headers = mapValues(identity.secretHeaders ?? {}, (refs) => mapValues(refs, anchor));
  const pools = mapValues(proxies?.pools ?? {}, (pool) => {
    const { from } = pool;
    if (!('list' in from)) return { ...pool, from: anchor(from) };
    const { credentials } = from;
    return { ...pool, from: credentials ? { ...from, credentials: anchor(credentials) } : from };
  });
  return {
    ...spec,
    ...(proxies ? { proxies: { ...proxies, pools } } : {}),
    ...(identity.secretHeaders ? { identity: { ...identity, secretHeaders: headers } } : {}),
    ...(api?.key ? { api: { ...api, key: anchor(api.key) } } : {}),
    ...(login ? { login: { state: anchor(login.state) } } : {}),
  };
}

function mapValues<T, R>(record: Record<string, T>, change: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
