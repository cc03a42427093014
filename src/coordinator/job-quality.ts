import type { QualityRow } from '../core/model.ts';
import type { Job, Store } from '../ports/store.ts';
import { COMPARABLE_MIN, judgeQuality } from './quality.ts';
import type { RouteQuality } from './run-view.ts';

/** Passes that are looked back: a pass in which little changed has too few records to compare with. */
const LOOK_BACK = 10;

/** The quality of one pass of a run, compared with the last before it that has enough records. */
export async function qualityOf(store: Store, job: Job, pass = job.pass): Promise<RouteQuality[]> {
  const rows = await store.views.quality(job.id, pass);
  if (rows.length === 0) return [];
  return judgeQuality(rows, await formerQuality(store, job, pass, new Set(rows.map(({ route }) => route))));
}

interface LatestQuality {
  /** Null when no pass of the run has figures. */
  pass: number | null;
  routes: RouteQuality[];
}

/** Of the newest pass that has figures: one in which every page was unchanged has none. */
export async function latestQualityOf(store: Store, job: Job): Promise<LatestQuality> {
  const pass = await store.views.lastQualityPass(job.id);
  return { pass, routes: pass === null ? [] : await qualityOf(store, job, pass) };
}

async function formerQuality(
  store: Store,
  job: Job,
  pass: number,
  wanted: Set<string>,
): Promise<QualityRow[]> {
  const found: QualityRow[] = [];
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
      if (wanted.has(row.route) && row.records + row.invalid >= COMPARABLE_MIN) {
        wanted.delete(row.route);
        found.push(row);
      }
    }
  }
  return found;
}

async function runBefore(store: Store, job: Job): Promise<Job | null> {
  if (job.run === 1) return null;
  const found = await store.jobs.find(`${job.name}-${job.run - 1}`);
  // Another job may have that very name.
  return found?.name === job.name ? found : null;
}
