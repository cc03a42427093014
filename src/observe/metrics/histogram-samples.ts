import { countOf, type Histogram, LATENCY_BOUNDS_SECONDS } from '../../core/rollups/histogram.ts';
import type { Metric } from './text-format.ts';

export function histogramSamples(histogram: Histogram, labels: Record<string, string>): Metric['samples'] {
  let below = 0;
  const buckets = LATENCY_BOUNDS_SECONDS.map((bound, index) => {
    below += histogram.buckets[index]!;
    return { labels: { ...labels, le: String(bound) }, value: below, suffix: '_bucket' as const };
  });
  const count = countOf(histogram);
  return [
    ...buckets,
    { labels: { ...labels, le: '+Inf' }, value: count, suffix: '_bucket' },
    { labels, value: histogram.sumMs / 1_000, suffix: '_sum' },
    { labels, value: count, suffix: '_count' },
  ];
}
