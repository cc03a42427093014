import type { NewTask } from '../../core/model.ts';
import type { EnqueueResult } from '../../ports/store.ts';
import { READY } from '../rows/states.ts';
import { type Transaction, together } from './database.ts';
import { type Found, findTasks, slotOf } from './find-tasks.ts';
import type { HostNumbers } from './host-ids.ts';
import type { JobMemory } from './job-memory.ts';
import { renewTasks } from './renew-tasks.ts';
import { type Books, toJson, toRows } from './rows.ts';
import { readSpent, spend } from './template-budget.ts';

export interface InsertContext {
  tx: Transaction;
  jobId: number;
  memory: JobMemory;
  hosts: HostNumbers;
  books: Books;
  perTemplateMax: number | null;
}

/** What is known of URLs before they are added. */
export interface LookedUp {
  /** Those that had to be looked for; the others are known for certain. */
  found: ReadonlyMap<string, Found>;
  spent: Map<string, number>;
}

/** May be asked for ahead of time, together with other things. */
export async function lookUp(
  { tx, jobId, memory, perTemplateMax }: Omit<InsertContext, 'hosts' | 'books'>,
  tasks: readonly NewTask[],
): Promise<LookedUp> {
  // A date must reach the task itself, so it goes past the prefilter.
  const asked = tasks.filter(({ url, modifiedAt }) => modifiedAt !== null || !memory.recent.has(url));
  if (asked.length === 0) return { found: new Map(), spent: new Map() };
  const slots = new Map(asked.map(({ url }) => [url, slotOf(url, memory.seed)]));
  const [found, spent] = await together<[Map<string, Found>, Map<string, number>]>(
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
): Promise<EnqueueResult> {
  const { tx, memory, books, perTemplateMax } = context;
  const asked = tasks.filter(({ url }) => found.has(url));
  const fresh = new Map<string, NewTask>();
  for (const task of asked) {
    if (found.get(task.url)?.id === null && !fresh.has(task.url)) fresh.set(task.url, task);
  }
  const entering = [...fresh.values()].filter((task) => spend(spent, task, perTemplateMax, books));
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
  books.count('accepted', accepted);
  books.count('pending', accepted);
  books.count('duplicates', result.duplicates);
  books.count('dropped', dropped);
  return result;
}

/** Those that were really new: others may have brought some of them in the meantime. */
async function addTasks(
  context: InsertContext,
  tasks: readonly NewTask[],
  slots: Map<string, number>,
): Promise<NewTask[]> {
  const { tx, jobId, memory, hosts, books } = context;
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
        r: route,
        j: toJson(meta),
        u: url,
        m: modifiedAt,
        f: task.referrer,
      });
      books.queue(hostId, 1);
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
