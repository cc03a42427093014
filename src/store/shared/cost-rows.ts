import { COST_ITEMS, type CostLine } from '../../core/cost/cost.ts';
import type { Settlement } from '../../ports/store.ts';

export const selectCosts = (jobId: string) =>
  `SELECT item, quantity, dollars FROM costs WHERE job_id = ${jobId}`;

/** In the order of the table. Items that a newer Seine counted are left out. */
export function toCostLines(rows: readonly CostLine[]): CostLine[] {
  return COST_ITEMS.flatMap((item) => rows.filter((row) => row.item === item).map((row) => ({ ...row })));
}

/** Requests count for a key alone: other jobs are spared a statement with every report. */
export function costsOf({ costs = [], requests, owner, now }: Settlement): {
  lines: readonly CostLine[];
  requests: number;
  now: number;
} {
  return { lines: costs, requests: owner === null ? 0 : requests, now };
}

/** Those of several reports, each item once. */
export function sumOfCosts(parts: readonly ReturnType<typeof costsOf>[]): ReturnType<typeof costsOf> {
  if (parts.length === 1) return parts[0]!;
  const lines = new Map<string, CostLine>();
  for (const line of parts.flatMap((part) => part.lines)) {
    const sum = lines.get(line.item) ?? { ...line, quantity: 0, dollars: 0 };
    sum.quantity += line.quantity;
    sum.dollars += line.dollars;
    lines.set(line.item, sum);
  }
  return {
    lines: [...lines.values()],
    requests: parts.reduce((sum, { requests }) => sum + requests, 0),
    now: Math.max(...parts.map(({ now }) => now)),
  };
}

const DAY_MS = 86_400_000;

/** Days of UTC since 1970, as key_usage has them. */
export function dayOf(now: number): number {
  return Math.floor(now / DAY_MS);
}
