import type { MediaRef } from '../../../core/model.ts';
import type { Database } from '../connection/database.ts';
import type { TaskInserter } from '../frontier/insert-tasks.ts';

/** One row for each object that a task brought: the same object again, in a later pass, only gets a new date. */
export function writeMedia(
  db: Database,
  row: { attemptId: number; jobId: number; taskId: number; pass: number },
  { key, member, md5 }: MediaRef,
): void {
  if (row.pass > 1)
    db.run('DELETE FROM media WHERE task_id = ? AND key = ? AND member IS ?', row.taskId, key, member);
  db.run(
    'INSERT INTO media (attempt_id, job_id, task_id, md5, key, member) VALUES (?, ?, ?, ?, ?, ?)',
    row.attemptId,
    row.jobId,
    row.taskId,
    Buffer.from(md5, 'hex'),
    key,
    member,
  );
}

/** Which media a page shows now. Their tasks came with its links, so this is for after those were inserted. */
export function writeShown(
  db: Database,
  inserter: TaskInserter,
  page: { jobId: number; taskId: number; replaces: boolean },
  urls: readonly string[],
): void {
  if (page.replaces) db.run('DELETE FROM shown WHERE page_task_id = ?', page.taskId);
  for (const url of urls) {
    const id = inserter.find(page.jobId, url);
    if (id !== null)
      db.run('INSERT OR IGNORE INTO shown (page_task_id, media_task_id) VALUES (?, ?)', page.taskId, id);
  }
}

/** Media that moved are shown by the pages that show their old URL: those are found over the redirect. */
export function writeMoved(
  db: Database,
  inserter: TaskInserter,
  from: { jobId: number; taskId: number; replaces: boolean },
  url: string,
): void {
  const isShown = db.get('SELECT 1 FROM shown WHERE media_task_id = ?', from.taskId) !== undefined;
  if (isShown) writeShown(db, inserter, from, [url]);
}
