import type { TaskChange } from '../../../../src/ports/store.ts';
import { recordHash } from '../../../support/fixtures.ts';

type Data = Record<string, unknown>;

interface ModelRecord {
  data: Data;
  taskId: number;
  fetchedAt: number;
  checkedAt: number;
}

/** Records of one name, as a map; the guard is none. */
export class ModelRecords {
  readonly #records = new Map<string, ModelRecord>();

  apply(change: TaskChange, now: number): void {
    const fetchedAt = change.trace?.startedAt ?? now;
    for (const { key, json, merge } of change.records) {
      const found = JSON.parse(json) as Data;
      const known = this.#records.get(key);
      if (known) this.#update(known, { found, merge, fetchedAt, taskId: change.id, now });
      else this.#records.set(key, { data: found, fetchedAt, checkedAt: now, taskId: change.id });
    }
    if (change.outcome !== 'unchanged') return;
    for (const record of this.#records.values())
      if (record.taskId === change.id) confirm(record, fetchedAt, now);
  }

  #update(
    known: ModelRecord,
    said: { found: Data; merge: boolean; fetchedAt: number; taskId: number; now: number },
  ): void {
    const { found, merge, fetchedAt, taskId, now } = said;
    const isLate = fetchedAt < known.fetchedAt && taskId !== known.taskId;
    if (isLate && !merge) return;
    const data = merge ? { ...known.data } : found;
    for (const [field, value] of Object.entries(merge ? found : {})) {
      if (value !== null && (!isLate || (known.data[field] ?? null) === null)) data[field] = value;
    }
    if (recordHash(data) === recordHash(known.data)) {
      if (!isLate) confirm(known, fetchedAt, now);
      return;
    }
    Object.assign(known, { data, taskId, checkedAt: now, fetchedAt: Math.max(known.fetchedAt, fetchedAt) });
  }

  data(): Map<string, Data> {
    return new Map([...this.#records].map(([key, { data }]) => [key, data]));
  }
}

function confirm(record: ModelRecord, fetchedAt: number, now: number): void {
  if (now <= record.checkedAt) return;
  record.checkedAt = now;
  record.fetchedAt = Math.max(record.fetchedAt, fetchedAt);
}
