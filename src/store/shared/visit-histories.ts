import {
  addVisit,
  type RevisitBounds,
  type Visit,
  type VisitHistory,
} from '../../core/revisits/revisit-interval.ts';
import type { TaskChange } from '../../ports/store.ts';

/**
 * What a visit says of how often its page changes; null when it says nothing: it failed, or the task goes on.
 * `isRecordNew`: whether this report created or changed the record.
 */
function findingOf(change: TaskChange, isRecordNew: (key: string) => boolean): Visit['finding'] | null {
  if (change.trace === null || change.to === 'pending') return null;
  if (change.to === 'dead') return change.code === 'not-found' ? 'gone' : null;
  // What a redirect leads to is a task of its own.
  if (change.outcome === 'unchanged' || change.outcome === 'redirected') return 'same';
  if (change.to !== 'done') return null;
  // Dates, adverts and tokens make other bytes of the same page: where it has records, those count.
  const { records } = change;
  return records.length === 0 || records.some(({ key }) => isRecordNew(key)) ? 'changed' : 'same';
}

/** By task, the histories that change, as JSON. */
export function nextHistories(
  changes: readonly TaskChange[],
  known: ReadonlyMap<number, string>,
  isRecordNew: (key: string) => boolean,
  bounds: RevisitBounds,
): Map<number, string> {
  const histories = new Map<number, string>();
  for (const change of changes) {
    const finding = findingOf(change, isRecordNew);
    if (finding === null || change.trace === null) continue;
    const json = known.get(change.id);
    const history: VisitHistory | null = json === undefined ? null : JSON.parse(json);
    const visit = { at: Math.round(change.trace.startedAt), finding };
    histories.set(change.id, JSON.stringify(addVisit(history, visit, bounds)));
  }
  return histories;
}
