import { type Receipt, receiptFor } from '../../core/cost/receipt.ts';
import type { Job, Store, Views } from '../../ports/store.ts';

export async function receiptOf(
  { jobs, views }: Pick<Store, 'jobs'> & { views: Pick<Views, 'tallies'> },
  job: Job,
): Promise<Receipt> {
  return receiptFor(
    { ...job, id: `${job.name}-${job.run}` },
    {
      items: await jobs.costs(job.id),
      counters: await jobs.counters(job.id),
      reasons: await views.tallies(job.id),
    },
  );
}
