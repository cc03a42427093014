import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HostRollups } from '../src/coordinator/rollups/host-rollups.ts';
import type { Job, LeasedBatch, Store, TaskChange } from '../src/ports/store.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import {
  change,
  createJob,
  hostChange,
  pageOf,
  settlementOf,
  taskOf,
  traceOf,
} from '../test/support/fixtures.ts';

/**
 * What roll-ups cost: two stores settle the same reports in turns, one of them without any roll-up. Everything else of a
 * crawl is the same with and without them, and would only add what other programs do to its time.
 */

const SETTLES_IN_A_TURN = 300;
const HOSTS = 8;
const CHUNK = 2_000;
/** How often the coordinator writes what it gathered of hosts: each time that it looks around. */
const SETTLES_BETWEEN_SAVES = 50;

/** CPU microseconds for a page that is settled. */
export interface RollupPair {
  without: number;
  kept: number;
}

interface Side {
  store: Store;
  job: Job;
  /** Null where there are to be no roll-ups. */
  hosts: HostRollups | null;
  settles: number;
}

export async function measureRollups(pairs: number, pagesInASettle: number): Promise<RollupPair[]> {
  const folder = mkdtempSync(join(tmpdir(), 'seine-rollups-'));
  // Hosts do not run out evenly.
  const tasks = (pairs + 3) * SETTLES_IN_A_TURN * pagesInASettle;
  const without = await openSide(join(folder, 'without.db'), tasks, false);
  const kept = await openSide(join(folder, 'kept.db'), tasks, true);
  try {
    // The first turn is to get warm.
    await turn(without, pagesInASettle);
    await turn(kept, pagesInASettle);
    const measured: RollupPair[] = [];
    for (let at = 0; at < pairs; at++) {
      const isFirst = at % 2 === 0;
      const one = await turn(isFirst ? kept : without, pagesInASettle);
      const other = await turn(isFirst ? without : kept, pagesInASettle);
      measured.push(isFirst ? { kept: one, without: other } : { kept: other, without: one });
    }
    return measured;
  } finally {
    await without.store.close();
    await kept.store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function openSide(path: string, count: number, keepsRollups: boolean): Promise<Side> {
  const store = openSqliteStore(path, { checkpointThread: true, keepsRollups });
  const job = await createJob(store, 'rollups');
  for (let from = 0; from < count; from += CHUNK) {
    const length = Math.min(CHUNK, count - from);
    const tasks = Array.from({ length }, (_, at) =>
      taskOf(`https://host-${at % HOSTS}.example/${from + at}`),
    );
    const source = { source: 0, position: String(from), done: false, rows: from, rejected: 0 };
    await store.frontier.enqueue(job.id, tasks, { now: Date.now(), perTemplateMax: null, source });
  }
  return { store, job, hosts: keepsRollups ? new HostRollups() : null, settles: 0 };
}

/** CPU microseconds for a page, of this process with the thread that writes the checkpoints. */
async function turn(side: Side, pagesInASettle: number): Promise<number> {
  let pages = 0;
  let cpu = 0;
  for (let at = 0; at < SETTLES_IN_A_TURN; at++) {
    const batch = await lease(side, pagesInASettle);
    const changes = changesOf(batch);
    const before = process.cpuUsage();
    await settle(side, batch, changes);
    const { user, system } = process.cpuUsage(before);
    cpu += user + system;
    pages += changes.length;
  }
  return cpu / pages;
}

async function lease({ store, job }: Side, count: number): Promise<LeasedBatch> {
  const now = Date.now();
  const due = await store.frontier.dueHosts(job.id, { now, before: now + 400, limit: HOSTS });
  // Together exactly as many as wanted: what does not divide evenly is the first hosts'.
  const share = (at: number) => Math.floor(count / due.length) + (at < count % due.length ? 1 : 0);
  const grants = due
    .map(({ id }, at) => ({ hostId: id, count: share(at), nextAt: now }))
    .filter((grant) => grant.count > 0);
  const [batch] = await store.frontier.lease(job.id, { batches: [{ grants, leaseMs: 60_000 }], now });
  if (!batch || batch.tasks.length === 0) throw new Error('no tasks are left');
  return batch;
}

function changesOf({ tasks }: LeasedBatch): TaskChange[] {
  const page = pageOf({ archive: { offset: 1_234, length: 5_678 }, route: 'item' });
  return tasks.map(({ id }, at) =>
    change.fetched(id, { page, trace: traceOf({ startedAt: Date.now(), durationMs: 2 + (at % 40) * 9 }) }),
  );
}

async function settle(side: Side, { id, tasks }: LeasedBatch, changes: TaskChange[]): Promise<void> {
  const { store, job, hosts } = side;
  const now = Date.now();
  const tasksOf = Map.groupBy(tasks, ({ url }) => new URL(url).host);
  const archive = { key: `warc/${id}.warc.gz`, bytes: 99_999 };
  const sent = [...tasksOf].map(([host, { length }]) => hostChange(host, { sent: length, nextAt: now }));
  const more = { now, archive, hosts: sent, requests: tasks.length };
  await store.frontier.settle(settlementOf(job, id, changes, more));
  side.settles++;
  if (!hosts) return;
  const changeOf = new Map(changes.map((one) => [one.id, one]));
  for (const [host, own] of tasksOf)
    hosts.add(
      host,
      own.map((task) => changeOf.get(task.id)!),
      own.length,
      now,
    );
  if (side.settles % SETTLES_BETWEEN_SAVES === 0) await store.rollups.add(job.id, hosts.take(), now);
}
