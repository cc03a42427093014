import type { QualityRow } from '../../core/model.ts';
import type { ReadStore } from '../../ports/store/read-store.ts';
import type { Job } from '../../ports/store.ts';
import type { QualityDrop, RouteQuality } from './run-view.ts';

type Reads = Pick<ReadStore, 'jobs' | 'views'>;

/** Passes that are looked back: a pass in which little changed has too few records to compare with. */
const LOOK_BACK = 10;

/** The quality of one pass of a run, compared with the last before it that has enough records. */
export async function qualityOf(store: Reads, job: Job, pass = job.pass): Promise<RouteQuality[]> {
  const rows = await store.views.quality(job.id, pass);
  if (rows.length === 0) return [];
  const former = await formerQuality(store, job, pass, new Set(rows.map(({ route }) => route)));
  // A route in whose pages there never was anything takes all kinds of pages.
  return judgeQuality(rows, former).filter(
    ({ records, invalid, drops }) => records + invalid + drops.length > 0,
  );
}

interface LatestQuality {
  /** Null when no pass of the run has figures. */
  pass: number | null;
  routes: RouteQuality[];
}

/** Of the newest pass that has figures: one in which every page was unchanged has none. */
export async function latestQualityOf(store: Reads, job: Job): Promise<LatestQuality> {
  const last = (await store.views.lastQualityPass(job.id)) ?? 0;
  for (let pass = last; pass > Math.max(0, last - LOOK_BACK); pass--) {
    const routes = await qualityOf(store, job, pass);
    if (routes.length > 0) return { pass, routes };
  }
  return { pass: null, routes: [] };
}

async function formerQuality(
  store: Reads,
  job: Job,
  pass: number,
  wanted: Set<string>,
): Promise<QualityRow[]> {
  const found: QualityRow[] = [];
  /** Of routes that never had more: the newest with some. */
  const few = new Map<string, QualityRow>();
  let run: Job | null = job;
  let before = pass;
  for (let step = 0; step < LOOK_BACK && wanted.size > 0; step++) {
    before--;
    if (before < 1) {
      run = await runBefore(store, run);
      if (!run) break;
      before = run.pass;
    }
    for (const row of await store.views.quality(run.id, before)) {
      if (!wanted.has(row.route)) continue;
      if (row.records + row.invalid >= COMPARABLE_MIN) {
        wanted.delete(row.route);
        found.push(row);
      } else if (row.records + row.invalid >= FEW_MIN && !few.has(row.route)) few.set(row.route, row);
    }
  }
  return [...found, ...[...few.values()].filter(({ route }) => wanted.has(route))];
}

async function runBefore(store: Reads, job: Job): Promise<Job | null> {
  if (job.run === 1) return null;
  const found = await store.jobs.find(`${job.name}-${job.run - 1}`);
  // Another job may have that very name.
  return found?.name === job.name ? found : null;
}

/** How good records are, and whether that got worse. See docs/records.md for the formulas. */

/** Fewer records say little: one missing price of five is no drift. */
export const COMPARABLE_MIN = 20;
/** From so many on, a fall of half or more is told: of five records, one without a price says nothing, and all of them do. */
export const FEW_MIN = 5;
export const FEW_DROP_MIN = 0.5;
/** A pass with far fewer records than the other has those of some pages only, which may be a kind of their own: sold out. */
const FEW_SHARE_MIN = 0.5;
/** With more pages than this share in which there was nothing, a route takes all kinds of pages. */
const BLANK_SHARE_MAX = 0.2;
/** A share that fell by so much is told. */
export const DROP_MIN = 0.1;
/** Shares are quotients: 0.9 - 0.8 is a little less than 0.1. */
const ROUNDING = 1e-9;

/** One entry for each route, by name. `before` has what the routes are compared with, where there is something. */
export function judgeQuality(rows: readonly QualityRow[], before: readonly QualityRow[]): RouteQuality[] {
  const former = new Map(before.map((row) => [row.route, row]));
  return rows
    .map((row) => judgeRoute(row, former.get(row.route) ?? null))
    .sort((a, b) => (a.route < b.route ? -1 : 1));
}

function judgeRoute(row: QualityRow, before: QualityRow | null): RouteQuality {
  const isByPage = before !== null && (before.blank ?? 0) <= BLANK_SHARE_MAX * pagesOf(before);
  const now = isByPage ? pagesOf(row) : row.records;
  const dropMin = before && dropMinOf(now, before.records);
  // A field that no record has any more is still a field of the route.
  const names = [...new Set([...Object.keys(row.filled), ...(dropMin ? Object.keys(before!.filled) : [])])];
  const rates = names.map((name): [string, number] => [name, rateOf(row, name)]);
  return {
    route: row.route,
    score: scoreOf(
      rates.map(([, rate]) => rate),
      row,
    ),
    records: row.records,
    invalid: row.invalid,
    fields: Object.fromEntries(rates.map(([name, rate]) => [name, rounded(rate)])),
    drops: [
      ...validityDrop(row, before),
      ...(dropMin ? names.flatMap((name) => fieldDrop(row, before!, name, { isByPage, dropMin })) : []),
    ],
  };
}

/** 0 to 100: the mean fill rate of the fields, times the share of records among records and refused pages. */
function scoreOf(rates: readonly number[], row: QualityRow): number {
  const filled = rates.length === 0 ? 1 : rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  return Math.round(100 * filled * (validShare(row) ?? 1));
}

function rateOf(row: QualityRow, field: string): number {
  const filled = Object.hasOwn(row.filled, field) ? row.filled[field]! : 0;
  return row.records === 0 ? 0 : Math.min(1, filled / row.records);
}

/** Pages that lost all their fields make no record, so that the fill rate of the others could not tell. */
function fieldDrop(
  row: QualityRow,
  before: QualityRow,
  field: string,
  { isByPage, dropMin }: { isByPage: boolean; dropMin: number },
): QualityDrop[] {
  const [was, is] = [rateOf(before, field), rateOf(row, field)];
  if (!isByPage) return dropOf(field, was, is, dropMin);
  return dropOf(field, was * recordShare(before), is * recordShare(row), dropMin);
}

/** From what on a share counts as fallen, with so many records now and before; null when they cannot be compared. */
function dropMinOf(now: number, before: number): number | null {
  const least = Math.min(now, before);
  if (least >= COMPARABLE_MIN) return DROP_MIN;
  return least >= FEW_MIN && least >= FEW_SHARE_MIN * Math.max(now, before) ? FEW_DROP_MIN : null;
}

function pagesOf({ records, blank = 0 }: QualityRow): number {
  return records + blank;
}

function recordShare(row: QualityRow): number {
  return row.records === 0 ? 0 : row.records / pagesOf(row);
}

function validShare({ records, invalid }: QualityRow): number | null {
  return records + invalid === 0 ? null : records / (records + invalid);
}

/** Pages whose required field is gone make no record, so that no fill rate could tell. */
function validityDrop(row: QualityRow, before: QualityRow | null): QualityDrop[] {
  const dropMin = before && dropMinOf(row.records + row.invalid, before.records + before.invalid);
  return dropMin ? dropOf(null, validShare(before!)!, validShare(row)!, dropMin) : [];
}

function dropOf(field: string | null, before: number, now: number, dropMin: number): QualityDrop[] {
  return before - now >= dropMin - ROUNDING ? [{ field, before: rounded(before), now: rounded(now) }] : [];
}

function rounded(rate: number): number {
  return Math.round(rate * 1_000) / 1_000;
}
