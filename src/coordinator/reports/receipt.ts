import { type Receipt, receiptFor } from '../../core/cost/receipt.ts';
import type { EscalationStore } from '../../ports/store/escalation-store.ts';
import type { Job, Store, Views } from '../../ports/store.ts';
import { methodCostsOf } from './method-costs.ts';

export async function receiptOf(
  {
    jobs,
    views,
    escalations,
  }: Pick<Store, 'jobs'> & { views: Pick<Views, 'tallies'>; escalations: Pick<EscalationStore, 'load'> },
  job: Job,
): Promise<Receipt> {
  const methods = await methodCostsOf({ escalations }, job);
  return receiptFor(
    { ...job, id: `${job.name}-${job.run}` },
    {
      items: await jobs.costs(job.id),
      counters: await jobs.counters(job.id),
      reasons: await views.tallies(job.id),
      methods: methods && { explored: methods.explored, rows: methods.all },
    },
  );
}
