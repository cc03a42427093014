import {
  CHECKPOINT_ENTRIES,
  CHECKPOINT_STEP,
  CUT_STEPS_MAX,
  CutSearch,
  EntriesBack,
  type LoggedText,
} from '../../core/host-log/checkpoint.ts';
import { FIRST_PREVIOUS, hashOf, type StoredLogEntry } from '../../core/host-log/host-log.ts';
import type { CheckpointOptions, HostLogText, LogCheckpoint } from '../../ports/store.ts';
import type { Database } from './connection/database.ts';

/** Adds an entry to the chain of a host. Lives inside the transaction of what it tells. */
export function appendHostLog(db: Database, { host, text }: HostLogText): void {
  const head = db.get<Head>('SELECT id, log_number, log_hash FROM hosts WHERE host = ?', host);
  if (!head) return;
  const number = head.log_number + 1;
  const hash = hashOf(head.log_hash ?? FIRST_PREVIOUS, text);
  db.run('UPDATE hosts SET log_number = ?, log_hash = ? WHERE id = ?', number, hash, head.id);
  db.run(
    'INSERT INTO host_log (host_id, number, hash, entry) VALUES (?, ?, ?, ?)',
    head.id,
    number,
    hash,
    text,
  );
}

interface Head {
  id: number;
  log_number: number;
  log_hash: string | null;
}

/** Lives inside a transaction. */
export function checkpointHostLog(
  db: Database,
  host: string,
  { now, keepMs, entries = CHECKPOINT_ENTRIES }: CheckpointOptions,
): LogCheckpoint {
  const head = db.get<Head>('SELECT id, log_number, log_hash FROM hosts WHERE host = ?', host);
  if (!head || head.log_hash === null || head.log_number < entries) return { isWritten: false, cut: 0 };
  const back = new EntriesBack();
  let step: LoggedText[] = [];
  do {
    const from = step.at(-1)?.number ?? head.log_number + 1;
    step = db.all<LoggedText>(SELECT_BACK, head.id, from, CHECKPOINT_STEP);
  } while (!back.add(step));
  const text = back.checkpoint({ host, last: head.log_hash, now, entries });
  if (text !== null) appendHostLog(db, { host, text });
  const search = new CutSearch(now - keepMs);
  let after = 0;
  for (let steps = 0; steps < CUT_STEPS_MAX; steps++) {
    step = db.all<LoggedText>(SELECT_ON, head.id, after, CHECKPOINT_STEP);
    if (search.add(step)) break;
    after = step.at(-1)!.number;
  }
  const cut = search.number === null ? 0 : db.run(CUT, head.id, search.number);
  return { isWritten: text !== null, cut };
}

const SELECT_BACK =
  'SELECT number, entry AS text FROM host_log WHERE host_id = ? AND number < ? ORDER BY number DESC LIMIT ?';
const SELECT_ON =
  'SELECT number, entry AS text FROM host_log WHERE host_id = ? AND number > ? ORDER BY number LIMIT ?';
const CUT = 'DELETE FROM host_log WHERE host_id = ? AND number < ?';

export function readHostLog(
  db: Database,
  host: string,
  { after, limit }: { after: number; limit: number },
): StoredLogEntry[] {
  return db.all<StoredLogEntry>(SELECT_LOG, host, after, limit);
}

const SELECT_LOG = `
  SELECT host_log.number, host_log.hash, host_log.entry AS text, (SELECT before.hash FROM host_log AS before
    WHERE before.host_id = host_log.host_id AND before.number = host_log.number - 1) AS previous
  FROM host_log JOIN hosts ON hosts.id = host_log.host_id
  WHERE hosts.host = ? AND host_log.number > ? ORDER BY host_log.number LIMIT ?`;
