import { resolve } from 'node:path';
import { SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job.ts';
import type { SecretRef } from '../core/job-schema-proxies.ts';

/** Finds routes that count on proxies or a remote scraping API which the job does not have. */
export function checkOutside({ routes, proxies, api }: JobSpec): void {
  for (const { name, proxy, fetcher, escalate } of routes) {
    const pool = proxy ?? proxies?.default;
    if (proxy !== undefined && !(proxies && Object.hasOwn(proxies.pools, proxy)))
      throw new SeineError(`route '${name}' names the proxy pool '${proxy}', which does not exist`);
    if (escalate.includes('proxy') && pool === undefined)
      throw new SeineError(`route '${name}' escalates to proxies, but names no pool`, {
        hint: 'set `proxy` of the route or `proxies.default` of the job',
      });
    if ((fetcher === 'api' || escalate.includes('api')) && !api)
      throw new SeineError(`route '${name}' wants a remote scraping API, but the job has no \`api\``);
  }
}

/** Files of secrets are meant from where the job file is, also when the job is resumed from elsewhere. */
export function anchorSecrets<T extends Pick<JobSpec, 'proxies' | 'api'>>(spec: T, dir: string): T {
  const anchor = (ref: SecretRef): SecretRef => ('file' in ref ? { file: resolve(dir, ref.file) } : ref);
  const { proxies, api } = spec;
  const pools = Object.entries(proxies?.pools ?? {}).map(([name, pool]) => {
    const { from } = pool;
    if (!('list' in from)) return [name, { ...pool, from: anchor(from) }];
    const { credentials } = from;
    return [name, { ...pool, from: credentials ? { ...from, credentials: anchor(credentials) } : from }];
  });
  return {
    ...spec,
    ...(proxies ? { proxies: { ...proxies, pools: Object.fromEntries(pools) } } : {}),
    ...(api?.key ? { api: { ...api, key: anchor(api.key) } } : {}),
  };
}
