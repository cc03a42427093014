import { KEY_LIMITS_DEFAULT, type Scope } from '../../core/keys/api-key.ts';
import type { ApiKey, KeyUsage } from '../../ports/store/key-store.ts';

export interface KeyColumns {
  id: string;
  name: string;
  hash: string;
  scope: Scope;
  limits: string;
  created_at: number;
  revoked_at: number | null;
}

export const SELECT_KEYS = 'SELECT id, name, hash, scope, limits, created_at, revoked_at FROM api_keys';

export function toKey(row: KeyColumns): ApiKey {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    scope: row.scope,
    // Keys of earlier versions lack the newer ones.
    limits: { ...KEY_LIMITS_DEFAULT, ...JSON.parse(row.limits) },
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  };
}

export const selectTasksOut = (id: string) => `
  SELECT CAST(coalesce(sum(leased), 0) AS bigint) AS tasks FROM counters
  WHERE job_id IN (SELECT id FROM jobs WHERE owner = ${id} AND state = 'running')`;

export const selectUsage = (id: string, day: string) => `
  SELECT pages, cost, requests, browser_seconds AS "browserSeconds" FROM key_usage
  WHERE key_id = ${id} AND day = ${day}`;

export function toUsage(row: KeyUsage | undefined): KeyUsage {
  const { pages = 0, cost = 0, requests = 0, browserSeconds = 0 } = row ?? {};
  return { pages, cost, requests, browserSeconds };
}

export const selectUnderWay = (id: string) => `
  SELECT CAST(coalesce(sum(pending + leased), 0) AS bigint) AS pages FROM counters
  WHERE job_id IN (SELECT id FROM jobs WHERE owner = ${id} AND state = 'running')`;
