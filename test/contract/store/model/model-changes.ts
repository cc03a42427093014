import type { TaskChange } from '../../../../src/ports/store.ts';
import { change, pageOf, recordOf, tasksOf, traceOf } from '../../../support/fixtures.ts';

export const hostName = (number: number) => `h${number % 3}.example`;

/** What may become of a task, by number; each page is another. */
export function makeChange(
  outcome: number,
  { id, job, now, page: pageNumber }: { id: number; job: number; now: number; page: number },
): TaskChange {
  const link = `https://${hostName(id)}/found-${id % 7}`;
  const elsewhere = `https://${hostName(id + 1)}/moved-${job}`;
  const page = pageOf({ sha256: pageNumber.toString(16).padStart(64, '0') });
  const trace = traceOf({ startedAt: now });
  const seen = { trace, page };
  const late = { trace: traceOf({ startedAt: now - 7 }), page };
  const key = `r${id % 5}`;
  const kinds = [
    () => change.fetched(id, { ...seen, links: tasksOf(link), records: [recordOf(key, { id })] }),
    () => change.unchanged(id, { trace }),
    () => change.skipped(id),
    () => change.dead(id, { trace }),
    () => change.dead(id, { ...seen, code: 'parse-error' }),
    () => change.again(id, now + 100, { trace }),
    () => change.again(id, now - 1, { trace }),
    () => change.deferred(id),
    () => change.moved(id, elsewhere, seen),
    () =>
      change.fetched(id, {
        ...late,
        records: [recordOf(key, { [`f${id % 3}`]: pageNumber % 4, id: null }, true)],
      }),
  ];
  return kinds[outcome % kinds.length]!();
}
