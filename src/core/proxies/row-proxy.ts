import type { JobSpec } from '../job-schema/job.ts';
import type { Meta } from '../model.ts';

/**
 * The pool and the country that a row of a source names for its page. They travel with the task among its columns, under
 * names of our own, and to the pages that its page leads to.
 */
export interface RowProxy {
  pool?: string;
  /** Two capital letters. */
  country?: string;
}

const POOL = '@pool';
const COUNTRY = '@country';

export const ROW_PROXY_NAMES: ReadonlySet<string> = new Set([POOL, COUNTRY]);

export function withRowProxy(meta: Meta | null, { pool, country }: RowProxy): Meta | null {
  if (pool === undefined && country === undefined) return meta;
  return {
    ...meta,
    ...(pool === undefined ? {} : { [POOL]: pool }),
    ...(country === undefined ? {} : { [COUNTRY]: country }),
  };
}

export function rowProxyOf(meta: Meta | null): RowProxy {
  const pool = meta?.[POOL];
  const country = meta?.[COUNTRY];
  return {
    ...(typeof pool === 'string' ? { pool } : {}),
    ...(typeof country === 'string' ? { country } : {}),
  };
}

/** Someone may have taken the proxy itself for the name of a pool: nothing that could be one is quoted or stored. */
export function shownPool(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? `'${name}'` : '(not the name of a pool)';
}

/** Why a job cannot send a page that way; null when it can. */
export function whyNoProxy(
  { pool, country }: RowProxy,
  { proxies }: Pick<JobSpec, 'proxies'>,
): string | null {
  if (pool !== undefined && !Object.hasOwn(proxies?.pools ?? {}, pool))
    return `unknown proxy pool ${shownPool(pool)}`;
  if (country !== undefined && !proxies) return 'the row names a country, but the job has no proxies';
  if (country !== undefined && !/^[A-Z]{2}$/.test(country))
    return `the country must be two letters such as DE, got '${country.slice(0, 40)}'`;
  return null;
}
