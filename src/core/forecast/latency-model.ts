import { normal } from './random.ts';

/**
 * How long requests to each host take, told from a sample that has many of some hosts and few or none of others. Logarithms of
 * latencies are spread alike at all hosts (`within`), around a middle of each host; the middles are spread around a common
 * one (`between`). What a host's own requests say of its middle is weighed against what the others say (empirical Bayes), so
 * that two slow answers do not make a host the slowest of all.
 */
export interface LatencyModel {
  middle: number;
  between: number;
  within: number;
  ofHost: ReadonlyMap<string, { count: number; mean: number }>;
}

/** Where a sample cannot tell: as at usual hosts. Standard deviations of the logarithm. */
const USUAL_BETWEEN = 1;
const USUAL_WITHIN = 0.5;
/** Hosts that look alike in a sample still differ by about a third. */
const BETWEEN_MIN = 0.3;
/** What is usual counts like so many requests, or hosts. */
const USUAL_REQUESTS = 5;
const USUAL_HOSTS = 2;

export function latencyModelOf(requests: readonly { host: string; durationMs: number }[]): LatencyModel {
  const ofHost = new Map<string, { count: number; mean: number }>();
  let squares = USUAL_REQUESTS * USUAL_WITHIN ** 2;
  let freedom = USUAL_REQUESTS;
  for (const [host, own] of Map.groupBy(requests, (request) => request.host)) {
    const logs = own.map(({ durationMs }) => Math.log(Math.max(1, durationMs)));
    const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    ofHost.set(host, { count: logs.length, mean });
    for (const log of logs) squares += (log - mean) ** 2;
    freedom += logs.length - 1;
  }
  const within = Math.sqrt(squares / freedom);
  const hosts = [...ofHost.values()];
  const middle = hosts.length === 0 ? 0 : hosts.reduce((sum, { mean }) => sum + mean, 0) / hosts.length;
  // The means of few requests are spread more than the middles are: by what chance adds.
  let spread = USUAL_HOSTS * USUAL_BETWEEN ** 2;
  for (const { mean, count } of hosts) spread += (mean - middle) ** 2 - within ** 2 / count;
  const between = Math.sqrt(
    Math.max(BETWEEN_MIN ** 2, spread / (USUAL_HOSTS + Math.max(0, hosts.length - 1))),
  );
  return { middle, between, within, ofHost };
}

/** What `count` requests to a host may take on average: another value with each call. */
export function meanLatencyOf(
  { middle, between, within, ofHost }: LatencyModel,
  host: string,
  count: number,
  random: () => number,
): number {
  const own = ofHost.get(host);
  const [known, usual] = [(own?.count ?? 0) / within ** 2, 1 / between ** 2];
  const expected = (known * (own?.mean ?? 0) + usual * middle) / (known + usual);
  const drawn = expected + normal(random) / Math.sqrt(known + usual);
  // The mean of a finite number of them is subject to chance, too.
  const variation = Math.sqrt(Math.expm1(within ** 2) / Math.max(1, count));
  return Math.exp(drawn + within ** 2 / 2) * Math.max(0.1, 1 + variation * normal(random));
}
