import type { NewTask } from '../../../core/model.ts';
import type { EnqueueResult } from '../../../ports/store.ts';
import { isFinished, READY } from '../../shared/states.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { type CounterUpdates, indexHint, readPass, toJson, toRows } from '../connection/rows.ts';
import { type Found, findTasks, slotOf } from './find-tasks.ts';
import type { HostNumbers } from './host-ids.ts';
import type { JobMemory } from './job-memory.ts';
import { reopenTasks, SELECT_VISITED, type VisitedTask } from './reopen.ts';

export interface InsertContext {
  tx: Transaction;
  jobId: number;
  memory: JobMemory;
  hosts: HostNumbers;
  counterUpdates: CounterUpdates;
  perTemplateMax: number | null;
}

/** What is known of URLs before they are added. */
export interface LookedUp {
  /** Those that had to be looked for; the others are known for certain. */
  found: ReadonlyMap<string, Found>;
  spent: Map<string, number>;
}

interface InsertResult extends EnqueueResult {
  /** Those that were accepted. */
  added: readonly NewTask[];
}

/** May be asked for ahead of time, together with other things. */
export async function lookUp(
  { tx, jobId, memory, perTemplateMax }: Omit<InsertContext, 'hosts' | 'counterUpdates'>,
  tasks: readonly NewTask[],
): Promise<LookedUp> {
  // A date must reach the task itself, so it goes past the prefilter.
  const asked = tasks.filter(({ url, modifiedAt }) => modifiedAt !== null || !memory.recent.has(url));
  if (asked.length === 0) return { found: new Map(), spent: new Map() };
  const slots = new Map(asked.map(({ url }) => [url, slotOf(url, memory.seed)]));
  const [found, spent] = await pipelined<[Map<string, Found>, Map<string, number>]>(
    findTasks(tx.run, jobId, slots),
    perTemplateMax === null ? Promise.resolve(new Map()) : readSpent(tx, jobId, asked),
  );
  return { found, spent };
}

/** Adds URLs to the frontier, each exactly once, in their order. Lives inside somebody's transaction. */
export async function insertTasks(
  context: InsertContext,
  tasks: readonly NewTask[],
  { found, spent }: LookedUp,
): Promise<InsertResult> {
  const { tx, memory, counterUpdates, perTemplateMax } = context;
  const asked = tasks.filter(({ url }) => found.has(url));
  const fresh = new Map<string, NewTask>();
  for (const task of asked) {
    if (found.get(task.url)?.id === null && !fresh.has(task.url)) fresh.set(task.url, task);
  }
  const entering = [...fresh.values()].filter((task) => spend(spent, task, perTemplateMax, counterUpdates));
  const slotsOfNew = new Map(entering.map(({ url }) => [url, found.get(url)!.slot]));
  const added = await addTasks(context, entering, slotsOfNew);
  const known = new Set([...found].filter(([, { id }]) => id !== null).map(([url]) => url));
  for (const { url } of entering) known.add(url);
  const dated = asked.filter(({ url, modifiedAt }) => modifiedAt !== null && found.get(url)!.id !== null);
  const renewed =
    dated.length === 0
      ? 0
      : await renewTasks(
          context,
          dated.map(({ url, modifiedAt }) => ({ id: found.get(url)!.id!, modifiedAt: modifiedAt! })),
        );
  const dropped = asked.filter(({ url }) => !known.has(url)).length;
  const accepted = added.length;
  const result = { accepted, dropped, duplicates: tasks.length - accepted - dropped - renewed };
  tx.afterCommit(() => {
    for (const url of known) memory.recent.add(url);
    if (accepted > 0) memory.hasFirst = true;
  });
  counterUpdates.count('accepted', accepted);
  counterUpdates.count('pending', accepted);
  counterUpdates.count('duplicates', result.duplicates);
  counterUpdates.count('dropped', dropped);
  return { ...result, added };
}

/** Those that were really new: others may have brought some of them in the meantime. */
async function addTasks(
  context: InsertContext,
  tasks: readonly NewTask[],
  slots: Map<string, number>,
): Promise<NewTask[]> {
  const { tx, jobId, memory, hosts, counterUpdates } = context;
  const added: NewTask[] = [];
  let open = [...tasks];
  while (open.length > 0) {
    const claims = await tx.run<{ slot: number; id: number }>(
      CLAIM,
      open.map(({ url }) => slots.get(url)!),
    );
    const ids = new Map(claims.map(({ slot, id }) => [slot, id]));
    const rows: object[] = [];
    const lost = new Map<string, number>();
    for (const task of open) {
      const slot = slots.get(task.url)!;
      const id = ids.get(slot);
      // Two of the same slot: the first has it.
      ids.delete(slot);
      if (id === undefined) {
        lost.set(task.url, slot);
        continue;
      }
      const { priority, depth, hops, route, meta, url, modifiedAt } = task;
      const hostId = hosts.of(task.host);
      rows.push({
        id,
        h: hostId,
        p: priority,
        d: depth,
        o: hops,
        r: route ?? undefined,
        j: toJson(meta) ?? undefined,
        u: url,
        m: modifiedAt ?? undefined,
        f: task.referrer ?? undefined,
      });
      counterUpdates.queue(hostId, 1);
      added.push(task);
    }
    if (rows.length > 0) tx.finally(tx.run(INSERT_TASKS, jobId, toRows(rows)));
    if (!memory.hasFirst && claims.length > 0) {
      const first = claims.reduce((least, { id }) => Math.min(least, id), Number.MAX_SAFE_INTEGER);
      tx.finally(tx.run(SET_FIRST, jobId, first));
    }
    if (lost.size === 0) break;
    const found = await findTasks(tx.run, jobId, lost);
    open = open.filter(({ url }) => found.get(url)?.id === null);
    for (const { url } of open) slots.set(url, found.get(url)!.slot);
  }
  return added;
}

/** Numbers are given in the order of the tasks, slots are taken in their own: so that two calls never wait in a ring. */
const CLAIM = `
  INSERT INTO seen (fingerprint, task_id)
  SELECT slot, id FROM (SELECT slot, nextval('task_ids') AS id FROM unnest($1::bigint[]) AS slot) AS numbered
  ORDER BY slot ON CONFLICT (fingerprint) DO NOTHING RETURNING fingerprint AS slot, task_id AS id`;

const INSERT_TASKS = `
  INSERT INTO tasks (id, job_id, host_id, state, priority, depth, hops, route, meta, url, modified_at, referrer)
  SELECT id, $1, h, ${READY}, p, d, o, r, j::json, u, m, f
  FROM json_to_recordset($2::json)
    AS task (id bigint, h bigint, p bigint, d integer, o smallint, r text, j text, u text, m bigint, f text)`;

const SET_FIRST = `
  UPDATE jobs SET first_task_id = $2 WHERE id = $1 AND (first_task_id IS NULL OR first_task_id > $2)`;

/** Known pages have these dates. Those that were visited before, and not in this pass, are due again; how many. */
async function renewTasks(
  { tx, jobId, counterUpdates }: Pick<InsertContext, 'tx' | 'jobId' | 'counterUpdates'>,
  dates: readonly { id: number; modifiedAt: number }[],
): Promise<number> {
  const pass = await readPass(tx, jobId);
  const ids = [...new Set(dates.map(({ id }) => id))];
  const rows = await tx.run<VisitedTask>(SELECT_DATED, ids);
  const tasks = new Map(rows.map((row) => [row.id, row]));
  const dated = new Map<number, number>();
  const due = new Map<number, VisitedTask>();
  for (const { id, modifiedAt } of dates) {
    const task = tasks.get(id);
    if (!task) continue;
    if (task.modified_at !== modifiedAt) dated.set(id, modifiedAt);
    const { visited_at: visitedAt } = task;
    if (pass.pass === 1 || visitedAt === null || !isFinished(task.state) || due.has(id)) continue;
    if (visitedAt < modifiedAt && visitedAt <= pass.startedAt) due.set(id, task);
  }
  if (dated.size > 0) await tx.run(SET_DATES, [...dated.keys()], [...dated.values()]);
  await reopenTasks(tx, [...due.values()], counterUpdates);
  return due.size;
}

const SELECT_DATED = `${SELECT_VISITED} WHERE tasks.id = ANY($1::bigint[]) ORDER BY tasks.id FOR UPDATE OF tasks`;

const SET_DATES = `
  UPDATE tasks SET modified_at = dated.at FROM unnest($1::bigint[], $2::bigint[]) AS dated (id, at)
  WHERE ${indexHint('dated.id')} AND tasks.id = dated.id`;

/**
 * What is spent of the budgets of URL templates. Read without a lock, and written at the end: reports that are settled
 * at the same moment may spend a little too much together, but need not wait for each other.
 */
async function readSpent(
  tx: Transaction,
  jobId: number,
  tasks: readonly NewTask[],
): Promise<Map<string, number>> {
  const templates = new Set(tasks.flatMap(({ template }) => (template === null ? [] : [template])));
  if (templates.size === 0) return new Map();
  const rows = await tx.run<{ template: string; count: number }>(SELECT_SPENT, jobId, [...templates]);
  return new Map(rows.map(({ template, count }) => [template, count]));
}

/** Spends for a new task, if there is something left. */
function spend(
  spent: Map<string, number>,
  { template }: NewTask,
  max: number | null,
  counterUpdates: CounterUpdates,
): boolean {
  if (max === null || template === null) return true;
  const count = spent.get(template) ?? 0;
  if (count >= max) return false;
  spent.set(template, count + 1);
  counterUpdates.spend(template, 1);
  return true;
}

const SELECT_SPENT = 'SELECT template, count FROM templates WHERE job_id = $1 AND template = ANY($2::text[])';
