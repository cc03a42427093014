import { SeineError, StorageFullError } from '../../../core/errors.ts';
import type { Settlement, SettleResult } from '../../../ports/store.ts';
import { tellWork } from '../../shared/webhooks/outbox.ts';
import { TAKE_ATTEMPT_NUMBERS } from '../connection/attempt-numbers.ts';
import { type Database, pipelined, type Transaction } from '../connection/database.ts';
import { ConflictError, troubleOf } from '../connection/failures.ts';
import { CounterUpdates } from '../connection/rows.ts';
import type { HostNumbers } from '../frontier/host-ids.ts';
import type { JobMemory } from '../frontier/job-memory.ts';
import { POSTGRES_OUTBOX, writeOutbox } from '../webhooks.ts';
import { applyChanges } from './apply-changes.ts';
import { firstOfEach, type SettledPart, settleInTransaction, writeTotals } from './settle.ts';

/**
 * A report is a transaction, and what a transaction costs whatever is in it (its mark, counters, sums, COMMIT) was a tenth
 * of the server's time for 60 tasks. So reports that wait for each other anyway are written together. Each is still
 * fenced by its own batch: one that comes too late changes nothing, and does not keep the others from being written.
 */

/** Transactions of reports at once; the others gather behind them. */
const AT_ONCE = 4;
/** A failure means that all of them are done again, one by one. */
const TOGETHER_MAX = 8;

interface SettleWork {
  settlement: Settlement;
  memory: JobMemory;
  hosts: HostNumbers;
}

interface Waiting extends SettleWork {
  resolve(result: SettleResult): void;
  reject(error: unknown): void;
}

export class SettleGroups {
  readonly #db: Pick<Database, 'write'>;
  readonly #waiting: Waiting[] = [];
  #running = 0;

  constructor(db: Pick<Database, 'write'>) {
    this.#db = db;
  }

  settle(work: SettleWork): Promise<SettleResult> {
    if (!isPlain(work)) return this.#alone(work);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...work, resolve, reject });
      this.#startNext();
    });
  }

  #alone({ settlement, ...known }: SettleWork): Promise<SettleResult> {
    return this.#db.write((tx) => settleInTransaction(tx, settlement, known));
  }

  #startNext(): void {
    while (this.#running < AT_ONCE && this.#waiting.length > 0) {
      this.#running++;
      void this.#run(takeGroup(this.#waiting)).finally(() => {
        this.#running--;
        this.#startNext();
      });
    }
  }

  /** Never rejects. */
  async #run(group: readonly Waiting[]): Promise<void> {
    try {
      if (group.length === 1) return group[0]!.resolve(await this.#alone(group[0]!));
      const results = await this.#db.write((tx) => settleTogether(tx, group));
      for (const [index, { resolve }] of group.entries()) resolve(results[index]!);
    } catch (error) {
      if (group.length === 1 || !isOfOne(error)) for (const { reject } of group) reject(error);
      else await Promise.all(group.map((each) => this.#alone(each).then(each.resolve, each.reject)));
    }
  }
}

/** The next reports that can be written together: of one job, and none about a host of another. */
export function takeGroup<T extends Pick<SettleWork, 'settlement'>>(waiting: T[]): T[] {
  const group: T[] = [];
  const hosts = new Set<string>();
  const left: T[] = [];
  for (const each of waiting.splice(0)) {
    const { settlement } = each;
    const fits =
      group.length < TOGETHER_MAX &&
      (group.length === 0 || settlement.jobId === group[0]!.settlement.jobId) &&
      group.every(({ settlement: { batchId } }) => batchId !== settlement.batchId) &&
      settlement.hosts.every(({ host }) => !hosts.has(host));
    if (!fits) {
      left.push(each);
      continue;
    }
    for (const { host } of settlement.hosts) hosts.add(host);
    group.push(each);
  }
  waiting.push(...left);
  // Batches are locked in one order, so that two groups never wait in a ring.
  return group.sort((a, b) => a.settlement.batchId - b.settlement.batchId);
}

/** Brings nothing that has to be looked up before or claimed: only outcomes of tasks in their first pass. */
export function isPlain({ settlement, memory }: SettleWork): boolean {
  const { links, records, quality, robots, costs, revisits, tasks } = settlement;
  if (memory.pass !== 1 || records.sink || revisits) return false;
  if ([links ?? [], quality, robots, costs ?? []].some((list) => list.length > 0)) return false;
  return tasks.every(
    (change) =>
      change.outcome !== 'unchanged' &&
      change.moveTo === null &&
      change.redirectTo === null &&
      change.links.length === 0 &&
      change.records.length === 0 &&
      change.shows.length === 0,
  );
}

/** Whether one of several reports may be the reason; otherwise it is the server, which the others would meet, too. */
function isOfOne(error: unknown): boolean {
  if (error instanceof StorageFullError) return false;
  if (error instanceof SeineError) return error.cause !== undefined && troubleOf(error.cause) === 'fatal';
  return true;
}

async function settleTogether(tx: Transaction, group: readonly SettleWork[]): Promise<SettleResult[]> {
  const { memory, settlement: first } = group[0]!;
  if (memory.pass !== 1) throw new Error('the next pass has begun: its reports are settled one by one');
  tx.finally(tx.run(TAKE_ATTEMPT_NUMBERS));
  const found = await pipelined<Awaited<ReturnType<typeof applyChanges>>[]>(
    ...group.map(({ settlement, hosts }) =>
      applyChanges(tx, settlement, firstOfEach(settlement.tasks), { hosts, earlier: new Map() }),
    ),
  );
  const parts = found.flatMap((settled, index): SettledPart[] =>
    settled === null ? [] : [{ ...settled, ...group[index]! }],
  );
  const later = parts.find(({ batch }) => batch.pass !== 1);
  if (later) {
    memory.pass = later.batch.pass;
    throw new ConflictError('the next pass has begun meanwhile');
  }
  if (parts.length > 0) await writeTotals(tx, first.jobId, parts, new CounterUpdates());
  for (const { settlement, batch, applied } of parts) {
    if (!batch.wants_work) continue;
    const { jobId, now } = settlement;
    const news = {
      jobId,
      pass: batch.pass,
      taskIds: applied.map(({ change }) => change.id),
      records: [],
      now,
    };
    await writeOutbox(tx, tellWork(POSTGRES_OUTBOX, news));
  }
  return found.map((settled) => ({ applied: settled !== null, accepted: 0 }));
}
