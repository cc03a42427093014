import { type CostLine, quantityOf, totalOf } from '../../../core/cost/cost.ts';
import { dayOf } from '../../shared/cost-rows.ts';
import type { Database } from '../connection/database.ts';

/** Adds lines to the bill of a job, and what they come to, with requests, to the day of its key. */
export function addCosts(
  db: Database,
  jobId: number,
  { lines, requests = 0, now }: { lines: readonly CostLine[]; requests?: number; now: number },
): void {
  for (const { item, quantity, dollars } of lines) db.run(ADD_LINE, jobId, item, quantity, dollars);
  const used = [totalOf(lines), requests, quantityOf(lines, 'browserSeconds')];
  if (used.some((part) => part > 0)) db.run(ADD_TO_KEY, jobId, dayOf(now), ...used);
}

const ADD_LINE = `
  INSERT INTO costs (job_id, item, quantity, dollars) VALUES (?, ?, ?, ?)
  ON CONFLICT (job_id, item) DO UPDATE SET quantity = quantity + excluded.quantity, dollars = dollars + excluded.dollars`;

const ADD_TO_KEY = `
  INSERT INTO key_usage (key_id, day, pages, cost, requests, browser_seconds)
  SELECT owner, ?2, 0, ?3, ?4, ?5 FROM jobs WHERE id = ?1 AND owner IS NOT NULL
  ON CONFLICT (key_id, day) DO UPDATE SET cost = cost + excluded.cost, requests = requests + excluded.requests,
    browser_seconds = browser_seconds + excluded.browser_seconds`;
