import { isJudgedByContent } from '../../../core/failures.ts';
import type { Rewrite } from '../../../ports/store.ts';
import { isFinished, STATE_NUMBERS, stateName } from '../../shared/states.ts';
import type { Transaction } from '../connection/database.ts';
import { CounterUpdates, cleanText, indexHint, readPass, toRows } from '../connection/rows.ts';
import type { JobMemory } from '../frontier/job-memory.ts';
import { writeShownBy } from '../settle/write-media.ts';
import { addQuality, deleteQuality } from '../settle/write-quality.ts';
import { deleteOtherRecords, type RecordWriter, writeRecords } from '../settle/write-records.ts';

interface FinishedTask {
  id: number;
  state: number;
  code: string | null;
  page_id: number | null;
}

type RewrittenTask = Rewrite['tasks'][number];

/** Puts what today's code makes of archived pages in the place of what was made of them before. */
export async function rewriteInTransaction(
  tx: Transaction,
  jobId: number,
  memory: JobMemory,
  rewrite: Rewrite,
): Promise<void> {
  const { pass, collectionId } = await readPass(tx, jobId);
  const { now, history } = rewrite;
  const counterUpdates = new CounterUpdates();
  const writer: RecordWriter = {
    tx,
    collectionId,
    jobId,
    now,
    rules: { guardMs: 0, history },
    counterUpdates,
    news: [],
  };
  const rows = await tx.run<FinishedTask>(
    LOCK_TASKS,
    jobId,
    rewrite.tasks.map(({ taskId }) => taskId),
  );
  const found = new Map(rows.map((row) => [row.id, row]));
  // Due again or lent meanwhile: its next visit will say.
  const tasks = rewrite.tasks.filter(({ taskId }) => isFinished(found.get(taskId)?.state ?? 0));
  await writeRecords(
    writer,
    tasks.flatMap(({ taskId, at, records }) =>
      records.map((draft) => ({ task: { id: taskId, fetchedAt: at }, draft })),
    ),
  );
  const kept = tasks.map(
    ({ taskId, records }) => [taskId, new Set(records.map(({ key }) => cleanText(key)))] as const,
  );
  await deleteOtherRecords(writer, new Map(kept));
  await judgeTasks(tx, found, tasks, counterUpdates);
  const shown = (rewrite.shown ?? []).map(({ taskId, urls }) => ({ id: taskId, urls }));
  await writeShownBy({ tx, jobId, memory }, shown, true);
  if (rewrite.first) await deleteQuality(tx, jobId, pass);
  await addQuality(tx, jobId, pass, rewrite.quality);
  tx.finally(counterUpdates.write(tx, jobId));
}

/** Only a verdict about the content is taken back or given: a page that the site did not give stays missing. */
async function judgeTasks(
  tx: Transaction,
  found: ReadonlyMap<number, FinishedTask>,
  changes: readonly RewrittenTask[],
  counterUpdates: CounterUpdates,
): Promise<void> {
  const { dead, done, skipped } = STATE_NUMBERS;
  const verdicts: object[] = [];
  for (const change of changes) {
    const task = found.get(change.taskId)!;
    const wasUnreadable = task.state === dead && isJudgedByContent(task.code);
    if (task.state === skipped || (task.state === dead && !wasUnreadable)) continue;
    const isUnreadable = change.to === 'dead';
    if (!wasUnreadable && !isUnreadable) continue;
    const code = isUnreadable ? (change.code ?? 'parse-error') : null;
    const detail = isUnreadable ? cleanText(change.detail) : null;
    verdicts.push({
      id: task.id,
      p: task.page_id,
      s: isUnreadable ? dead : done,
      o: isUnreadable ? 'failed' : 'fetched',
      c: code,
      t: detail,
    });
    counterUpdates.count(stateName(task.state), -1);
    counterUpdates.count(change.to, 1);
    if (wasUnreadable && task.code) counterUpdates.tally('dead', task.code, -1);
    if (code) counterUpdates.tally('dead', code, 1);
  }
  if (verdicts.length === 0) return;
  await tx.run(JUDGE_TASKS, toRows(verdicts));
  // The log says so too: a page that could not be read is not one to compare the next visit with.
  await tx.run(JUDGE_PAGES, toRows(verdicts));
}

const LOCK_TASKS = `
  SELECT tasks.id, tasks.state, tasks.code, coalesce(attempts.page_id, attempts.id) AS page_id
  FROM tasks LEFT JOIN attempts ON attempts.id = tasks.attempt_id
  WHERE tasks.id = ANY($2::bigint[]) AND tasks.job_id = $1 ORDER BY tasks.id FOR UPDATE OF tasks`;

const VERDICT =
  'json_to_recordset($1::json) AS verdict (id bigint, p bigint, s smallint, o text, c text, t text)';

const JUDGE_TASKS = `
  UPDATE tasks SET state = verdict.s, code = verdict.c, detail = verdict.t FROM ${VERDICT}
  WHERE ${indexHint('verdict.id')} AND tasks.id = verdict.id`;

const JUDGE_PAGES = `
  UPDATE attempts SET outcome = verdict.o, code = verdict.c FROM ${VERDICT}
  WHERE ${indexHint('verdict.p')} AND attempts.id = verdict.p`;
