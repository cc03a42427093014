import { FIRST_PREVIOUS, hashOf, type StoredLogEntry } from '../../core/host-log/host-log.ts';
import type { HostLogText } from '../../ports/store.ts';
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

export function readHostLog(
  db: Database,
  host: string,
  { after, limit }: { after: number; limit: number },
): StoredLogEntry[] {
  return db.all<StoredLogEntry>(SELECT_LOG, FIRST_PREVIOUS, host, after, limit);
}

const SELECT_LOG = `
  SELECT host_log.number, host_log.hash, host_log.entry AS text, coalesce((SELECT before.hash FROM host_log AS before
    WHERE before.host_id = host_log.host_id AND before.number = host_log.number - 1), ?) AS previous
  FROM host_log JOIN hosts ON hosts.id = host_log.host_id
  WHERE hosts.host = ? AND host_log.number > ? ORDER BY host_log.number LIMIT ?`;
