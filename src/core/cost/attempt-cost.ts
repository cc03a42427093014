import type { EscalationLevel, FetcherKind } from '../escalation/escalation.ts';
import type { Prices } from './cost.ts';

/**
 * What one attempt costs, so that fetch methods can be compared. It is not the bill: that has the time of machines and
 * functions as a whole (`cost.ts`), while here each attempt has its share of a machine.
 */

/** What a price that is not set is taken to be, in comparisons only: otherwise a proxy or an API would seem to be free. */
const ASSUMED_PRICES = { machineHour: 0.1, proxyGb: 3, apiCall: 0.002 } as const;

const GB = 1e9;
const HOUR_MS = 3_600_000;
/** Headers are not measured: each request counts as this many bytes sent. */
const REQUEST_BYTES = 1_000;
/** Of a machine, for a request without a browser: parsing and storing its page. */
const REQUEST_MACHINE_MS = 2;
/** A small machine has room for about so many pages of a browser at once. */
const BROWSER_PAGES = 4;

/** What an attempt is taken to be like before there was one. */
const USUAL_BYTES = 100_000;
const USUAL_BROWSER_BYTES = 1_000_000;
const USUAL_BROWSER_MS = 4_000;
/** Most are between a quarter and four times of that. */
export const USUAL_SPREAD = 4;
/** Pages of one template differ less: by about a half. */
const SEEN_SPREAD = 1.5;
/** A browser loads about so many times what the document has. */
const BROWSER_FACTOR = USUAL_BROWSER_BYTES / USUAL_BYTES;

/** Bytes of pages that other levels brought; null where none did. */
export interface SeenBytes {
  document: number | null;
  /** With all that a browser loads. */
  browser: number | null;
}

interface AttemptUse {
  fetcher: FetcherKind;
  isProxied: boolean;
  bytes: number;
  durationMs: number;
  /** What a remote scraping API took for it. */
  credits: number;
}

export function attemptDollars(use: AttemptUse, prices: Prices): number {
  const price = (name: keyof typeof ASSUMED_PRICES) => prices[name] || ASSUMED_PRICES[name];
  const machineMs =
    use.fetcher === 'browser'
      ? Math.max(REQUEST_MACHINE_MS, use.durationMs / BROWSER_PAGES)
      : REQUEST_MACHINE_MS;
  return (
    (machineMs / HOUR_MS) * price('machineHour') +
    (REQUEST_BYTES / GB) * prices.egressGb +
    (use.isProxied ? ((use.bytes + REQUEST_BYTES) / GB) * price('proxyGb') : 0) +
    (use.fetcher === 'api' ? use.credits * price('apiCall') : 0)
  );
}

/**
 * Before anything is known of a host: the least that an attempt is likely to cost, and the most. A method is judged by the
 * least, because one that is never tried is never known; and what trying it may cost is the most.
 */
export function usualDollars(
  { fetcher, pool }: Pick<EscalationLevel, 'fetcher' | 'pool'>,
  prices: Prices,
  seen: SeenBytes = { document: null, browser: null },
): { least: number; most: number } {
  const isBrowser = fetcher === 'browser';
  const { bytes, spread } = usualBytes(isBrowser, seen);
  const dollars = (bytesFactor: number, factor: number) =>
    attemptDollars(
      {
        fetcher,
        isProxied: pool !== null,
        bytes: bytesFactor * bytes,
        durationMs: factor * (isBrowser ? USUAL_BROWSER_MS : 0),
        credits: 1,
      },
      prices,
    );
  return { least: dollars(1 / spread, 1 / USUAL_SPREAD), most: dollars(spread, USUAL_SPREAD) };
}

function usualBytes(isBrowser: boolean, seen: SeenBytes): { bytes: number; spread: number } {
  if (isBrowser) {
    if (seen.browser !== null) return { bytes: seen.browser, spread: SEEN_SPREAD };
    return {
      bytes: seen.document === null ? USUAL_BROWSER_BYTES : seen.document * BROWSER_FACTOR,
      spread: USUAL_SPREAD,
    };
  }
  if (seen.document !== null) return { bytes: seen.document, spread: SEEN_SPREAD };
  return { bytes: USUAL_BYTES, spread: USUAL_SPREAD };
}
