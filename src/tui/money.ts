import type { CostLine } from '../core/cost/cost.ts';
import type { Receipt } from '../core/cost/receipt.ts';
import type { Forecast } from '../core/forecast/forecast.ts';
import { formatAmount, formatBytes, formatCount, formatDuration, formatUsd } from './format.ts';

/** Names of the lines of a bill, as people read them. */
const ITEM_NAMES: Record<CostLine['item'], string> = {
  lambdaCalls: 'Lambda calls',
  lambdaGbSeconds: 'Lambda GB-seconds',
  lambdaArmGbSeconds: 'Lambda GB-seconds (arm)',
  lambdaStorageGbSeconds: 'Lambda storage GB-seconds',
  s3Puts: 'S3 PUTs',
  egressGb: 'GB sent',
  proxyGb: 'GB through proxies',
  apiCalls: 'calls of the scraping API',
  machineHours: 'machine hours',
  browserSeconds: 'browser seconds',
};

export function forecastText({ seconds, dollars, criticalHost, sample, ...sums }: Forecast): string {
  const basis = {
    sample: `from a sample of ${formatAmount(sample.requests, 'request')}`,
    'earlier runs': `from an earlier run of ${formatAmount(sample.requests, 'request')}`,
    assumptions: 'assuming what is usual, without a sample',
  }[sample.from];
  const critical = criticalHost === null ? '' : `; ${criticalHost} takes longest`;
  return [
    `${basis}:`,
    `  pages      ${formatCount(sums.pages)}, with ${formatAmount(sums.requests, 'request')} and ${formatBytes(sums.bytes)}`,
    `  time       ${formatDuration(seconds.p50 * 1_000)}, with 90 % certainty within ${formatDuration(seconds.p90 * 1_000)}${critical}`,
    `  cost       ${formatUsd(dollars.p50)}, with 90 % certainty within ${formatUsd(dollars.p90)}`,
    ...dollars.items.map(itemLine),
  ].join('\n');
}

function itemLine({ item, quantity, dollars }: CostLine): string {
  return `    ${quantityText(quantity)} ${ITEM_NAMES[item]}: ${formatUsd(dollars)}`;
}

function quantityText(quantity: number): string {
  return quantity >= 100 ? formatCount(Math.round(quantity)) : String(Number(quantity.toPrecision(3)));
}

export function receiptText(receipt: Receipt): string {
  const { quote, bill, urls, reasons } = receipt;
  const quoted = quote
    ? `quoted ${formatUsd(quote.dollars.p50)} (90 %: ${formatUsd(quote.dollars.p90)}) and ${formatDuration(quote.seconds.p50 * 1_000)} (90 %: ${formatDuration(quote.seconds.p90 * 1_000)})`
    : 'without a forecast';
  return [
    `${receipt.id} is ${receipt.state}${receipt.reason ? ` (${receipt.reason})` : ''}, ${quoted}`,
    `  cost       ${formatUsd(bill.dollars)} for ${formatAmount(receipt.requests, 'request')}, ${formatBytes(receipt.bytes)}, ${formatDuration(receipt.seconds * 1_000)}`,
    ...bill.items.map(itemLine),
    ...(receipt.methods?.rows.map((row) => `    ${methodText(row)}`) ?? []),
    ...(receipt.methods ? [`    exploring other methods: ${formatUsd(receipt.methods.explored)}`] : []),
    `  URLs       ${urlsText(urls)}${receipt.addsUp ? '' : ' (the counts do not add up: this is a bug)'}`,
    ...reasons.map(({ state, code, count }) => `    ${state} ${code}: ${formatCount(count)}`),
    `  besides    ${formatAmount(urls.duplicates, 'duplicate')}, ${formatCount(urls.rejected)} rejected, ${formatCount(urls.dropped)} dropped`,
  ].join('\n');
}

/** `http honest: 950 pages of 1,000 attempts, 0.0000001 USD a page`. */
export function methodText({
  method,
  attempts,
  pages,
  dollars,
  dollarsPerPage,
}: NonNullable<Receipt['methods']>['rows'][number]): string {
  const price =
    dollarsPerPage === null ? `${formatUsd(dollars)} for nothing` : `${formatUsd(dollarsPerPage)} a page`;
  return `${method}: ${formatAmount(pages, 'page')} of ${formatAmount(attempts, 'attempt')}, ${price}`;
}

function urlsText({ accepted, done, unchanged, skipped, dead, waiting }: Receipt['urls']): string {
  const parts = Object.entries({ done, unchanged, skipped, dead, waiting }).map(
    ([name, count]) => `${name} ${formatCount(count)}`,
  );
  return `accepted ${formatCount(accepted)} = ${parts.join(' + ')}`;
}

/** One line for the end of a run; null when it cost nothing and nothing was quoted. */
export function receiptLine({ bill, quote, id }: Receipt): string | null {
  if (bill.dollars === 0 && quote === null) return null;
  const quoted = quote
    ? ` of ${formatUsd(quote.dollars.p50)} quoted (90 %: ${formatUsd(quote.dollars.p90)})`
    : '';
  return `receipt: ${formatUsd(bill.dollars)}${quoted}; \`seine receipt ${id}\` has every line`;
}
