import type { Forecast } from '../../../core/forecast/forecast.ts';
import type { Job } from '../../../ports/store.ts';
import type { ApiContext } from '../requests/access.ts';
import { Problem } from '../requests/problems.ts';

/** A quote that is higher than what the caller wants to pay is the answer. */
export function checkQuote(quote: Forecast, maxCost: number): void {
  if (quote.dollars.p50 <= maxCost) return;
  const detail = `it would probably cost ${quote.dollars.p50.toPrecision(3)} USD, and ${maxCost} USD are allowed`;
  throw new Problem('over-budget', detail, { extensions: { quote } });
}

/** The quote of a job whose pages are written down becomes its own. */
export async function quoteJob(
  { store, forecasts }: Pick<ApiContext, 'store' | 'forecasts'>,
  job: Job,
  maxCost: number,
): Promise<void> {
  const quote = await forecasts.ofJob(job);
  checkQuote(quote, maxCost);
  await store.jobs.update(job.id, { quote });
}
