import type { Quantiles } from '../../core/rollups/histogram.ts';
import { latencyOf } from '../../core/rollups/rollup.ts';
import type { ReadStore } from '../../ports/store/read-store.ts';

/** More than have rows within two weeks, unless others become the busiest every hour. */
const HOSTS_MAX = 2_000;

/** How long hosts of a job took to answer, as far as they have rows. */
export async function hostLatencies(
  store: Pick<ReadStore, 'rollups'>,
  jobId: number,
): Promise<Map<string, Quantiles>> {
  const rows = await store.rollups.hosts(jobId, { limit: HOSTS_MAX });
  return new Map(rows.map(({ host, rollup }) => [host, latencyOf(rollup)]));
}
