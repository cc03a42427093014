import type { LastVisit } from '../../core/model.ts';
import type { AdoptedBatch, LeasedTask } from '../../ports/store.ts';
import { type Hash, hexOf } from './hash.ts';

/** A task that is lent, and its last visit where there was one. */
export interface ReadyColumns {
  id: number;
  url: string;
  at_url: string | null;
  depth: number;
  route: string | null;
  attempts: number;
  hops: number;
  losses: number;
  throttles: number;
  meta: string | null;
  referrer: string | null;
  sha256?: Hash | null;
  etag?: string | null;
  last_modified?: string | null;
  page_at_url?: string | null;
  archived_at?: number | null;
  archive_sha256?: Hash | null;
}

export function toLeased(row: ReadyColumns, hostId: number): LeasedTask {
  return {
    id: row.id,
    url: row.at_url ?? row.url,
    hostId,
    depth: row.depth,
    route: row.route,
    attempt: row.attempts + 1,
    hops: row.hops,
    meta: row.meta === null ? null : JSON.parse(row.meta),
    lastVisit: row.sha256 ? toLastVisit(row, row.sha256) : null,
    ...(row.throttles === 0 ? {} : { throttles: row.throttles }),
    ...(row.referrer === null ? {} : { referrer: row.referrer }),
  };
}

/** A batch that was noted as sent. */
export interface SentColumns {
  reply_to: string;
  permits: string | null;
  lease_until: number;
  task_ids: string;
}

export function toAdopted(
  id: number,
  { reply_to: replyTo, permits, lease_until: leaseUntil }: Omit<SentColumns, 'task_ids'>,
  rows: readonly (ReadyColumns & { host_id: number })[],
): AdoptedBatch {
  return {
    id,
    leaseUntil,
    replyTo,
    handover: permits === null ? null : JSON.parse(permits),
    tasks: rows.map((row) => toLeased(row, row.host_id)),
  };
}

/** Validators of a page that came from elsewhere are not those of the task's own URL. */
function toLastVisit(row: ReadyColumns, sha256: Hash): LastVisit {
  const own = row.page_at_url === null;
  return {
    etag: own ? (row.etag ?? null) : null,
    lastModified: own ? (row.last_modified ?? null) : null,
    sha256: hexOf(sha256),
    ...(own && row.archived_at != null
      ? { archived: { at: row.archived_at, sha256: hexOf(row.archive_sha256 ?? sha256) } }
      : {}),
  };
}
