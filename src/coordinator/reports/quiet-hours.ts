import { type QuietHours, quietHoursOf } from '../../core/quiet-hours/quiet-hours.ts';
import { HOST_SECONDS_KEPT } from '../../core/rollups/rollup.ts';
import type { ReadStore } from '../../ports/store/read-store.ts';

const HOUR_SECONDS = 3_600;
/** Others have too few requests to tell hours apart. */
const HOSTS_MAX = 200;

/** Hours in which the busiest hosts of a job refuse less or answer faster, for those of them that have such hours. */
export async function hostQuietHours(
  store: Pick<ReadStore, 'rollups'>,
  jobId: number,
  now: number,
): Promise<Map<string, QuietHours>> {
  const found = new Map<string, QuietHours>();
  const span = { from: now - HOST_SECONDS_KEPT[HOUR_SECONDS] * 1_000, to: now };
  for (const { host } of await store.rollups.hosts(jobId, { limit: HOSTS_MAX })) {
    const rows = await store.rollups.series(jobId, { step: HOUR_SECONDS, ...span, host });
    const quiet = quietHoursOf(rows);
    if (quiet) found.set(host, quiet);
  }
  return found;
}
