import { isJudgedByContent } from '../../../core/failures.ts';
import type { Rewrite } from '../../../ports/store.ts';
import { isFinished, STATE_NUMBERS, stateName } from '../../shared/states.ts';
import type { Database } from '../connection/database.ts';
import { addTally, CounterDelta, readPass } from '../connection/rows.ts';
import type { TaskInserter } from '../frontier/insert-tasks.ts';
import { writeShown } from '../settle/write-media.ts';
import { addQuality, deleteQuality } from '../settle/write-quality.ts';
import { deleteOtherRecords, type RecordWriter, writeRecords } from '../settle/write-records.ts';

interface FinishedTask {
  state: number;
  code: string | null;
  page_id: number | null;
}

type RewrittenTask = Rewrite['tasks'][number];

/** Puts what today's code makes of archived pages in the place of what was made of them before. */
export function rewriteInTransaction(
  db: Database,
  inserter: TaskInserter,
  jobId: number,
  rewrite: Rewrite,
): void {
  const { pass, collectionId } = readPass(db, jobId);
  const { now, history } = rewrite;
  const counters = new CounterDelta();
  const writer: RecordWriter = {
    collectionId,
    jobId,
    now,
    rules: { guardMs: 0, history },
    counters,
    news: [],
  };
  for (const change of rewrite.tasks) {
    const task = db.get<FinishedTask>(FIND_TASK, change.taskId, jobId);
    // Due again or lent meanwhile: its next visit will say.
    if (!task || !isFinished(task.state)) continue;
    writeRecords(db, writer, { id: change.taskId, fetchedAt: change.at }, change.records);
    deleteOtherRecords(db, writer, change.taskId, new Set(change.records.map(({ key }) => key)));
    judgeTask(db, jobId, task, change, counters);
  }
  // As in a later pass: what they showed before does not count any more.
  for (const { taskId, urls } of rewrite.shown ?? [])
    writeShown(db, inserter, { jobId, taskId, replaces: true }, urls);
  counters.write(db, jobId);
  if (rewrite.first) deleteQuality(db, jobId, pass);
  addQuality(db, jobId, pass, rewrite.quality);
}

/** Only a verdict about the content is taken back or given: a page that the site did not give stays missing. */
function judgeTask(
  db: Database,
  jobId: number,
  task: FinishedTask,
  change: RewrittenTask,
  counters: CounterDelta,
): void {
  const { dead, done, skipped } = STATE_NUMBERS;
  const wasUnreadable = task.state === dead && isJudgedByContent(task.code);
  if (task.state === skipped || (task.state === dead && !wasUnreadable)) return;
  const isUnreadable = change.to === 'dead';
  if (!wasUnreadable && !isUnreadable) return;
  const code = isUnreadable ? (change.code ?? 'parse-error') : null;
  db.run(JUDGE_TASK, isUnreadable ? dead : done, code, isUnreadable ? change.detail : null, change.taskId);
  // The log says so too: a page that could not be read is not one to compare the next visit with.
  db.run(JUDGE_PAGE, isUnreadable ? 'failed' : 'fetched', code, task.page_id);
  counters.add(stateName(task.state), -1);
  counters.add(change.to, 1);
  if (wasUnreadable && task.code) addTally(db, jobId, 'dead', task.code, -1);
  if (code) addTally(db, jobId, 'dead', code, 1);
}

const FIND_TASK = `
  SELECT tasks.state, tasks.code, coalesce(attempts.page_id, attempts.id) AS page_id
  FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id WHERE tasks.id = ? AND tasks.job_id = ?`;

const JUDGE_TASK = 'UPDATE tasks SET state = ?, code = ?, detail = ? WHERE id = ?';

const JUDGE_PAGE = 'UPDATE attempts SET outcome = ?, code = ? WHERE id = ?';
