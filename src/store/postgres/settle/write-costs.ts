import { type CostLine, quantityOf, totalOf } from '../../../core/cost/cost.ts';
import { dayOf } from '../../shared/cost-rows.ts';
import type { Transaction } from '../connection/database.ts';
import { toRows } from '../connection/rows.ts';

/** Adds lines to the bill of a job, and what they come to, with requests, to the day of its key. */
export async function addCosts(
  tx: Transaction,
  jobId: number,
  { lines, requests = 0, now }: { lines: readonly CostLine[]; requests?: number; now: number },
): Promise<void> {
  if (lines.length > 0) await tx.run(ADD_LINES, jobId, toRows([...lines]));
  const used = [totalOf(lines), requests, quantityOf(lines, 'browserSeconds')];
  if (used.some((part) => part > 0)) await tx.run(ADD_TO_KEY, jobId, dayOf(now), ...used);
}

/** In one order, so that two settles never wait for each other. */
const ADD_LINES = `
  INSERT INTO costs (job_id, item, quantity, dollars)
  SELECT $1, item, quantity, dollars
  FROM json_to_recordset($2::json) AS line (item text, quantity double precision, dollars double precision) ORDER BY item
  ON CONFLICT (job_id, item) DO UPDATE SET quantity = costs.quantity + excluded.quantity,
    dollars = costs.dollars + excluded.dollars`;

const ADD_TO_KEY = `
  INSERT INTO key_usage AS used (key_id, day, pages, cost, requests, browser_seconds)
  SELECT owner, $2::integer, 0, $3::double precision, $4::bigint, $5::double precision
  FROM jobs WHERE id = $1 AND owner IS NOT NULL
  ON CONFLICT (key_id, day) DO UPDATE SET cost = used.cost + excluded.cost, requests = used.requests + excluded.requests,
    browser_seconds = used.browser_seconds + excluded.browser_seconds`;
