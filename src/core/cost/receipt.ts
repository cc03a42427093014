import type { Forecast } from '../forecast/forecast.ts';
import { balance, type Counters, type JobState } from '../model.ts';
import { type CostLine, totalOf } from './cost.ts';

/** What a job was quoted, what it came to, and what became of every URL. */
export interface Receipt {
  /** Names exactly this run. */
  id: string;
  state: JobState;
  /** Why it stopped; null when it is done. */
  reason: string | null;
  quote: Forecast | null;
  bill: { dollars: number; items: CostLine[] };
  /** What was spent beyond the quote, as a share of it: 0.1 is a tenth more. Null without a quote that costs something. */
  overQuote: number | null;
  requests: number;
  bytes: number;
  seconds: number;
  /** `accepted` is the sum of the rows below it, down to `waiting`. */
  urls: {
    accepted: number;
    done: number;
    unchanged: number;
    skipped: number;
    dead: number;
    waiting: number;
    /** Not accepted: known already, unusable, or refused as traps. */
    duplicates: number;
    rejected: number;
    dropped: number;
  };
  /** Skipped and dead URLs by reason. */
  reasons: { state: string; code: string; count: number }[];
  addsUp: boolean;
  /** What each fetch method cost, where the job compares them by cost; otherwise null. */
  methods: {
    explored: number;
    rows: {
      method: string;
      attempts: number;
      pages: number;
      dollars: number;
      dollarsPerPage: number | null;
    }[];
  } | null;
}

export function receiptFor(
  job: { id: string; state: JobState; reason: string | null; quote: Forecast | null; workedMs: number },
  {
    items,
    counters,
    reasons,
    methods,
  }: {
    items: CostLine[];
    counters: Counters;
    reasons: Receipt['reasons'];
    methods: Receipt['methods'];
  },
): Receipt {
  const { id, state, reason, quote, workedMs } = job;
  const { accepted, done, unchanged, skipped, dead, pending, leased } = counters;
  const { duplicates, rejected, dropped, requests, bytes } = counters;
  const dollars = totalOf(items);
  const quoted = quote?.dollars.p50 ?? 0;
  return {
    ...{ id, state, reason, quote },
    bill: { dollars, items },
    overQuote: quoted > 0 ? dollars / quoted - 1 : null,
    requests,
    bytes,
    seconds: Math.round(workedMs) / 1_000,
    urls: {
      ...{ accepted, done, unchanged, skipped, dead, waiting: pending + leased },
      ...{ duplicates, rejected, dropped },
    },
    reasons,
    addsUp: balance(counters) === 0,
    methods,
  };
}
