import type { HostChange, RobotsEntry, Settlement } from '../../../ports/store.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { type CounterUpdates, cleanText, indexHint, toJson, toRows } from '../connection/rows.ts';
import type { HostNumbers } from '../frontier/host-ids.ts';
import { LOG_HASH } from '../host-log.ts';
import type { OpenBatch } from './apply-changes.ts';

/** A report, with what its batch held. */
interface HostsPart {
  settlement: Pick<Settlement, 'hosts' | 'robots' | 'final'>;
  batch: OpenBatch;
  hosts: HostNumbers;
}

interface HostRow {
  id: number;
  /** Holds that end. */
  r?: number;
}

/**
 * What reports say about hosts, after their robots.txt were written; of several at once no two may say something of the
 * same host. The last one of a batch also lets go of those that the batch held.
 */
export async function writeHosts(
  tx: Transaction,
  jobId: number,
  parts: readonly HostsPart[],
  counterUpdates: CounterUpdates,
): Promise<void> {
  const byCoordinator = Map.groupBy(parts, ({ batch }) => batch.coordinator);
  const work = [...byCoordinator].map(async ([coordinator, own]) => {
    const rows = rowsOf(own, counterUpdates);
    if (rows.size === 0) return;
    const ids = [...rows.keys()].sort((a, b) => a - b);
    await tx.run(UPDATE_HOSTS, toRows(ids.map((id) => rows.get(id)!)), ids, coordinator, jobId);
  });
  await pipelined(...work);
}

function rowsOf(parts: readonly HostsPart[], counterUpdates: CounterUpdates): Map<number, HostRow> {
  const rows = new Map<number, HostRow>();
  for (const { settlement, batch, hosts } of parts) {
    const { hosts: changes, robots, final } = settlement;
    const released = final ? batch.hostIds : [];
    for (const id of released) rows.set(id, { ...rows.get(id), id, r: (rows.get(id)?.r ?? 0) + 1 });
    for (const change of changes) {
      const id = hosts.of(change.host);
      if (change.nextAt !== null)
        counterUpdates.free(id, { nextAt: change.nextAt, takenUntil: change.takenUntil ?? null });
      rows.set(id, { ...rows.get(id), ...toRow(change), id });
    }
    for (const { host } of robots) {
      const id = hosts.of(host);
      rows.set(id, { ...rows.get(id), id, k: true } as HostRow);
    }
  }
  return rows;
}

function toRow(change: HostChange): object {
  const {
    sent,
    nextAt,
    takenUntil,
    failuresInRow,
    rests,
    pace,
    ban,
    reachedAt,
    smallestGapMs,
    span,
    lastError,
    isPaced,
    log,
  } = change;
  // What is not there is left out: the server reads every letter.
  const health = {
    f: failuresInRow ?? undefined,
    s: rests ?? undefined,
    p: toJson(pace) ?? undefined,
    b: toJson(ban ?? null) ?? undefined,
    h: reachedAt ?? undefined,
    g: smallestGapMs ?? undefined,
    e: toJson(lastError) ?? undefined,
  };
  return {
    q: sent,
    n: nextAt ?? undefined,
    u: takenUntil ?? undefined,
    w: isPaced ? (nextAt ?? undefined) : undefined,
    a: span?.from,
    z: span?.to,
    ...health,
    l: log,
  };
}

export async function writeRobots(tx: Transaction, entries: readonly RobotsEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const rows = new Map(
    entries.map((entry) => [
      entry.origin,
      {
        ...entry,
        text: cleanText(entry.text),
        detail: cleanText(entry.detail),
        redirectTo: cleanText(entry.redirectTo),
      },
    ]),
  );
  await tx.run(UPSERT_ROBOTS, toRows([...rows.values()]));
}

/**
 * With the entries of their logs, whose chains go on from what holds when the hosts are locked.
 * A host that was lent again meanwhile, by another coordinator or this one, must not become free earlier than that. Of
 * several origins that are counted together, the one that wants the most time decides.
 */
const UPDATE_HOSTS = `
  WITH locked AS MATERIALIZED (SELECT id FROM hosts WHERE id = ANY($2::bigint[]) ORDER BY id FOR UPDATE),
  changed AS (
  UPDATE hosts SET requests = hosts.requests + coalesce(change.q, 0),
    failures_in_row = coalesce(change.f, hosts.failures_in_row), rests = coalesce(change.s, hosts.rests),
    next_at = CASE WHEN change.n IS NULL THEN hosts.next_at
      WHEN (hosts.holder = $3 OR hosts.holds = 0) AND hosts.next_at <= coalesce(change.u, hosts.next_at) THEN change.n
      ELSE greatest(change.n, hosts.next_at) END,
    pace = coalesce(change.p::json, hosts.pace), ban = coalesce(change.b::json, hosts.ban),
    reached_at = coalesce(change.h, hosts.reached_at),
    smallest_gap_ms = least(change.g, hosts.smallest_gap_ms,
      CASE WHEN hosts.last_sent_at < change.a THEN change.a - hosts.last_sent_at END),
    last_sent_at = greatest(hosts.last_sent_at, change.z),
    last_error = coalesce(change.e::json, hosts.last_error),
    paced_until = coalesce(change.w, hosts.paced_until),
    paced_by = CASE WHEN change.w IS NULL THEN hosts.paced_by ELSE $4::bigint END,
    crawl_delay_ms = CASE WHEN change.k
      THEN (SELECT max(robots.crawl_delay_ms) FROM robots WHERE robots.host = hosts.host) ELSE hosts.crawl_delay_ms END,
    holds = CASE WHEN hosts.holder = $3 THEN greatest(hosts.holds - coalesce(change.r, 0), 0) ELSE hosts.holds END,
    log_number = hosts.log_number + CASE WHEN change.l IS NULL THEN 0 ELSE 1 END,
    log_hash = CASE WHEN change.l IS NULL THEN hosts.log_hash ELSE ${LOG_HASH('change.l')} END
  FROM json_to_recordset($1::json) AS change (id bigint, r integer, q bigint, n bigint, u bigint, f integer, s integer, p text, b text, h bigint,
    g double precision, e text, k boolean, w bigint,
    a double precision, z double precision, l text)
  WHERE ${indexHint('change.id')} AND hosts.id = change.id AND (SELECT count(*) FROM locked) > 0
  RETURNING hosts.id, hosts.log_number, hosts.log_hash, change.l
  )
  INSERT INTO host_log (host_id, number, hash, entry) SELECT id, log_number, log_hash, l FROM changed WHERE l IS NOT NULL`;

const UPSERT_ROBOTS = `
  INSERT INTO robots (origin, host, text, fetched_at, failures, detail, crawl_delay_ms, redirect_to)
  SELECT origin, host, text, "fetchedAt", failures, detail, "crawlDelayMs", "redirectTo" FROM json_to_recordset($1::json)
    AS entry (origin text, host text, text text, "fetchedAt" bigint, failures integer, detail text, "crawlDelayMs" bigint,
      "redirectTo" text)
  ORDER BY origin
  ON CONFLICT (origin) DO UPDATE SET host = excluded.host, text = excluded.text, fetched_at = excluded.fetched_at,
    failures = excluded.failures, detail = excluded.detail, crawl_delay_ms = excluded.crawl_delay_ms,
    redirect_to = excluded.redirect_to`;
