import type { Report } from '../batch/batch.ts';
import type { Outcome, Trace } from '../batch/outcome.ts';

/**
 * What a job uses that costs money, and what that is worth. Quantities are counted in one place, `usageOfReport`, and become
 * dollars in one place, `billOf`. The bill has one line for each item.
 */

/**
 * Dollars, by what is paid for. Those of AWS are on-demand prices of US East (N. Virginia), first tier, as of 2026-01-01.
 * What differs from contract to contract is 0 until it is set.
 */
export const PRICES_DEFAULT = {
  lambdaCall: 0.000_000_2,
  lambdaGbSecond: 0.000_016_666_7,
  lambdaArmGbSecond: 0.000_013_333_4,
  /** Of /tmp, beyond the first 512 MB. */
  lambdaStorageGbSecond: 0.000_000_030_9,
  s3Put: 0.000_005,
  egressGb: 0,
  proxyGb: 0,
  apiCall: 0,
  machineHour: 0,
} as const;

type PriceName = keyof typeof PRICES_DEFAULT;
export type Prices = Readonly<Record<PriceName, number>>;

/** The lines of a bill, each with its price; a line without one is only counted. */
const ITEM_PRICES = {
  lambdaCalls: 'lambdaCall',
  lambdaGbSeconds: 'lambdaGbSecond',
  lambdaArmGbSeconds: 'lambdaArmGbSecond',
  lambdaStorageGbSeconds: 'lambdaStorageGbSecond',
  s3Puts: 's3Put',
  egressGb: 'egressGb',
  proxyGb: 'proxyGb',
  apiCalls: 'apiCall',
  machineHours: 'machineHour',
  browserSeconds: null,
} as const satisfies Record<string, PriceName | null>;

type CostItem = keyof typeof ITEM_PRICES;
export const COST_ITEMS = Object.keys(ITEM_PRICES) as CostItem[];

/** Quantities by item. */
export type Usage = Partial<Record<CostItem, number>>;

export interface CostLine {
  item: CostItem;
  quantity: number;
  dollars: number;
}

const GB = 1e9;
/** Headers are not measured: each request counts as this many bytes sent. */
const REQUEST_BYTES = 1_000;
/** Larger files go up in parts of this size, each of which is a PUT. */
const PART_BYTES = 8 * 1024 * 1024;

/** Lines for what was used, in the order of the table. */
export function billOf(usage: Usage, prices: Prices): CostLine[] {
  return COST_ITEMS.flatMap((item) => {
    const quantity = usage[item] ?? 0;
    if (quantity <= 0) return [];
    const price = ITEM_PRICES[item];
    const dollars = price === null ? 0 : quantity * prices[price];
    // An estimate that costs nothing says nothing, and would be written with every report.
    return item === 'egressGb' && dollars === 0 ? [] : [{ item, quantity, dollars }];
  });
}

export function totalOf(lines: readonly CostLine[]): number {
  return lines.reduce((sum, { dollars }) => sum + dollars, 0);
}

export function quantityOf(lines: readonly CostLine[], item: CostItem): number {
  return lines.find((line) => line.item === item)?.quantity ?? 0;
}

export function sumOfUsage(...parts: readonly Usage[]): Usage {
  const sum: Usage = {};
  for (const part of parts)
    for (const item of COST_ITEMS) if (part[item]) sum[item] = (sum[item] ?? 0) + part[item];
  return sum;
}

/** What a report says was used. What the transport itself costs is not in it. */
export function usageOfReport(
  { permits, outcomes, archive, pack }: Pick<Report, 'permits' | 'outcomes' | 'archive' | 'pack'>,
  { storesInS3 }: { storesInS3: boolean },
): Usage {
  const traces = outcomes.flatMap((outcome) => traceOf(outcome) ?? []);
  const requests = permits.reduce((sum, { sent }) => sum + sent, 0);
  const browserMs = sumOver(traces, ({ via, durationMs }) => (via?.fetcher === 'browser' ? durationMs : 0));
  const files = outcomes.filter((outcome) => mediaOf(outcome)).length;
  const shots = sumOver(traces, (trace) => trace.shots?.length ?? 0);
  const puts = putsOf(archive) + putsOf(pack ?? null) + files + shots;
  return {
    s3Puts: storesInS3 ? puts : 0,
    egressGb: (requests * REQUEST_BYTES) / GB,
    proxyGb: sumOver(traces, ({ via, bytes }) => (via?.proxy ? bytes + REQUEST_BYTES : 0)) / GB,
    apiCalls: sumOver(traces, ({ via }) => (via?.fetcher === 'api' ? (via.cost ?? 1) : 0)),
    browserSeconds: browserMs / 1_000,
  };
}

function traceOf(outcome: Outcome): Trace | null {
  return outcome.kind === 'deferred' ? null : outcome.trace;
}

/** Objects that are stored by themselves; those in a shard are part of its PUTs. */
function mediaOf(outcome: Outcome): boolean {
  return outcome.kind === 'fetched' && outcome.page.media !== null && outcome.page.media.member === null;
}

function putsOf(stored: { bytes: number } | null): number {
  return stored === null ? 0 : Math.max(1, Math.ceil(stored.bytes / PART_BYTES));
}

function sumOver<T>(list: readonly T[], of: (entry: T) => number): number {
  return list.reduce((sum, entry) => sum + of(entry), 0);
}

/** `proxyGb=8,machineHour=0.1`: prices that differ from the default ones. Null when the text makes no sense. */
export function parsePrices(text: string): Prices | null {
  const prices: Record<PriceName, number> = { ...PRICES_DEFAULT };
  for (const part of text.split(',')) {
    const [, name = '', price = ''] = /^\s*(\w+)\s*=\s*([\d.eE-]+)\s*$/.exec(part) ?? [];
    const value = Number(price);
    if (!Object.hasOwn(prices, name) || price === '' || !(value >= 0 && value < 1e6)) return null;
    prices[name as PriceName] = value;
  }
  return prices;
}

export function pricesText(prices: Prices): string {
  return Object.entries(prices)
    .map(([name, price]) => `${name}=${price}`)
    .join(',');
}
