import { SeineError, StorageFullError } from '../../../core/errors.ts';
import type { Settlement, SettleResult } from '../../../ports/store.ts';
import type { Database } from '../connection/database.ts';
import { troubleOf } from '../connection/failures.ts';
import { type SettleWork, settleInTransaction } from './settle.ts';

/**
 * What a transaction costs whatever is in it (its mark, the start of its statements, hosts, counters, sums, COMMIT) is much
 * for reports of 60 tasks. So reports that wait for a connection anyway are written together, which took a sixth off the CPU
 * of a task. One that finds a free connection is written at once, alone.
 */

/** A failure means that all of them are done again, one by one. */
const TOGETHER_MAX = 8;
const TASKS_TOGETHER_MAX = 1_000;

interface Waiting extends SettleWork {
  resolve(result: SettleResult): void;
  reject(error: unknown): void;
}

export class SettleQueue {
  readonly #db: Pick<Database, 'write' | 'writeNext' | 'size'>;
  readonly #waiting: Waiting[] = [];

  constructor(db: Pick<Database, 'write' | 'writeNext' | 'size'>) {
    this.#db = db;
  }

  settle(work: SettleWork): Promise<SettleResult> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...work, resolve, reject });
      // At the end of this turn of the event loop: reports that came in one piece are all here by then.
      setImmediate(() => void this.#writeNext());
    });
  }

  /** Each report waits for a connection of its own, and the one that gets it takes others along. Never rejects. */
  async #writeNext(): Promise<void> {
    let group: Waiting[] = [];
    try {
      const results = await this.#db.writeNext(() => {
        // Half of the connections are to have something to do, however few are left.
        group = takeGroup(this.#waiting, Math.ceil((2 * this.#waiting.length) / this.#db.size));
        return group.length === 0 ? null : (tx) => settleInTransaction(tx, group);
      });
      for (const [index, { resolve }] of group.entries()) resolve(results![index]!);
    } catch (error) {
      if (group.length === 1 || !isOfOne(error)) for (const { reject } of group) reject(error);
      else await Promise.all(group.map((each) => this.#writeAlone(each)));
    }
  }

  async #writeAlone(work: Waiting): Promise<void> {
    try {
      const [result] = await this.#db.write((tx) => settleInTransaction(tx, [work]));
      work.resolve(result!);
    } catch (error) {
      work.reject(error);
    }
  }
}

/** The next reports that can be written together: of one job, and with no batch, host or task in common. */
export function takeGroup<T extends Pick<SettleWork, 'settlement'>>(waiting: T[], wanted: number): T[] {
  const most = Math.min(TOGETHER_MAX, wanted);
  const group: T[] = [];
  const left: T[] = [];
  const names = new Set<string | number>();
  let tasks = 0;
  let at = 0;
  for (; at < waiting.length && group.length < most; at++) {
    const each = waiting[at]!;
    const { settlement } = each;
    const own = namesIn(settlement);
    const isFirst = group.length === 0;
    const fits =
      isFirst ||
      (tasks + settlement.tasks.length <= TASKS_TOGETHER_MAX &&
        hasSameRules(settlement, group[0]!.settlement) &&
        own.every((name) => !names.has(name)));
    if (!fits) {
      left.push(each);
      continue;
    }
    for (const name of own) names.add(name);
    tasks += settlement.tasks.length;
    group.push(each);
  }
  waiting.splice(0, at, ...left);
  return group;
}

/** What no two reports of a transaction may both have: batches as texts, beside the numbers of tasks and the names of hosts. */
function namesIn({ batchId, tasks, hosts }: Settlement): (string | number)[] {
  return [`batch ${batchId}`, ...hosts.map(({ host }) => host), ...tasks.map(({ id }) => id)];
}

/** They are those of the job, which may have changed between two runs. */
function hasSameRules(a: Settlement, b: Settlement): boolean {
  return (
    a.jobId === b.jobId &&
    a.owner === b.owner &&
    a.perTemplateMax === b.perTemplateMax &&
    a.records.guardMs === b.records.guardMs &&
    a.records.history === b.records.history &&
    a.records.sink?.spec === b.records.sink?.spec &&
    JSON.stringify(a.revisits) === JSON.stringify(b.revisits)
  );
}

/** Whether one of several reports may be the reason; otherwise it is the server, which the others would meet, too. */
function isOfOne(error: unknown): boolean {
  if (error instanceof StorageFullError) return false;
  if (error instanceof SeineError) return error.cause !== undefined && troubleOf(error.cause) === 'fatal';
  return true;
}
