import {
  CHECKPOINT_ENTRIES,
  CHECKPOINT_STEP,
  CUT_STEPS_MAX,
  CutSearch,
  EntriesBack,
  type LoggedText,
} from '../../core/host-log/checkpoint.ts';
import { FIRST_PREVIOUS, type StoredLogEntry } from '../../core/host-log/host-log.ts';
import type { CheckpointOptions, HostLogText, LogCheckpoint } from '../../ports/store.ts';
import type { Database, Transaction } from './connection/database.ts';
import { cleanText, toRows } from './connection/rows.ts';

/** Adds entries to the chains of hosts, at most one for each. Lives inside the transaction of what they tell. */
export async function appendHostLogs(tx: Transaction, logs: readonly HostLogText[]): Promise<void> {
  if (logs.length === 0) return;
  const hosts = logs.map(({ host }) => cleanText(host));
  await tx.run(APPEND_LOGS, toRows(logs), hosts);
}

/** The host is locked: nothing is added to its chain meanwhile. */
export async function checkpointHostLog(
  tx: Transaction,
  host: string,
  { now, keepMs, entries = CHECKPOINT_ENTRIES }: CheckpointOptions,
): Promise<LogCheckpoint> {
  const [head] = await tx.run<Head>(LOCK_HEAD, cleanText(host));
  if (!head || head.log_hash === null || head.log_number < entries) return { isWritten: false, cut: 0 };
  const back = new EntriesBack();
  let step: LoggedText[] = [];
  do {
    const from = step.at(-1)?.number ?? head.log_number + 1;
    step = await tx.run<LoggedText>(SELECT_BACK, head.id, from, CHECKPOINT_STEP);
  } while (!back.add(step));
  const text = back.checkpoint({ host, last: head.log_hash, now, entries });
  if (text !== null) await appendHostLogs(tx, [{ host, text }]);
  const search = new CutSearch(now - keepMs);
  let after = 0;
  for (let steps = 0; steps < CUT_STEPS_MAX; steps++) {
    step = await tx.run<LoggedText>(SELECT_ON, head.id, after, CHECKPOINT_STEP);
    if (search.add(step)) break;
    after = step.at(-1)!.number;
  }
  const cut = search.number === null ? [] : await tx.run(CUT, head.id, search.number);
  return { isWritten: text !== null, cut: cut.length };
}

interface Head {
  id: number;
  log_number: number;
  log_hash: string | null;
}

const LOCK_HEAD = 'SELECT id, log_number, log_hash FROM hosts WHERE host = $1 FOR UPDATE';
const SELECT_BACK =
  'SELECT number, entry AS text FROM host_log WHERE host_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3';
const SELECT_ON =
  'SELECT number, entry AS text FROM host_log WHERE host_id = $1 AND number > $2 ORDER BY number LIMIT $3';
const CUT = 'DELETE FROM host_log WHERE host_id = $1 AND number < $2 RETURNING number';

export async function readHostLog(
  reads: Pick<Database, 'read'>,
  host: string,
  { after, limit }: { after: number; limit: number },
): Promise<StoredLogEntry[]> {
  return reads.read<StoredLogEntry>(SELECT_LOG, host, after, limit);
}

/** SQL for the hash of the next entry of a host. */
export function LOG_HASH(entry: string): string {
  return `encode(sha256(convert_to(coalesce(hosts.log_hash, '${FIRST_PREVIOUS}') || ${entry}, 'UTF8')), 'hex')`;
}

/** Hosts are locked in one order, so that two coordinators never wait in a ring; the chain goes on from what holds then. */
const APPEND_LOGS = `
  WITH locked AS MATERIALIZED (SELECT id FROM hosts WHERE host = ANY($2::text[]) ORDER BY id FOR UPDATE),
  appended AS (
    UPDATE hosts SET log_number = hosts.log_number + 1, log_hash = ${LOG_HASH('entry.text')}
    FROM json_to_recordset($1::json) AS entry (host text, text text)
    WHERE hosts.host = entry.host AND (SELECT count(*) FROM locked) > 0
    RETURNING hosts.id, hosts.log_number, hosts.log_hash, entry.text
  )
  INSERT INTO host_log (host_id, number, hash, entry) SELECT id, log_number, log_hash, text FROM appended`;

const SELECT_LOG = `
  SELECT host_log.number, host_log.hash, host_log.entry AS text, (SELECT before.hash FROM host_log AS before
    WHERE before.host_id = host_log.host_id AND before.number = host_log.number - 1) AS previous
  FROM host_log JOIN hosts ON hosts.id = host_log.host_id
  WHERE hosts.host = $1 AND host_log.number > $2 ORDER BY host_log.number LIMIT $3`;
