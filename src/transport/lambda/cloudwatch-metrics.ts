import type { Batch, Report } from '../../core/batch/batch.ts';

const METRICS = [
  { Name: 'Pages', Unit: 'Count' },
  { Name: 'Failures', Unit: 'Count' },
  { Name: 'Deferred', Unit: 'Count' },
  { Name: 'Requests', Unit: 'Count' },
  { Name: 'Bytes', Unit: 'Bytes' },
  { Name: 'Duration', Unit: 'Milliseconds' },
  { Name: 'ColdStarts', Unit: 'Count' },
] as const;

/** One line of the log from which CloudWatch makes metrics by itself, without a request: its embedded metric format. */
export function metricsLine(
  batch: Pick<Batch, 'id' | 'job'>,
  reports: readonly Report[],
  call: { now: number; durationMs: number; cold: boolean },
): string {
  const counts = { Pages: 0, Failures: 0, Deferred: 0, Bytes: 0 };
  for (const outcome of reports.flatMap(({ outcomes }) => outcomes)) {
    if (outcome.kind === 'failed') counts.Failures++;
    else if (outcome.kind === 'deferred') counts.Deferred++;
    else if (outcome.kind !== 'skipped') counts.Pages++;
    if (outcome.kind !== 'deferred') counts.Bytes += outcome.trace?.bytes ?? 0;
  }
  return JSON.stringify({
    _aws: {
      Timestamp: Math.floor(call.now),
      CloudWatchMetrics: [{ Namespace: 'Seine', Dimensions: [['Job']], Metrics: METRICS }],
    },
    Job: batch.job.name,
    Batch: batch.id,
    // As attempts name it: whose log stream this is.
    Worker: reports[0]?.worker ?? null,
    ...counts,
    Requests: reports.flatMap(({ permits }) => permits).reduce((sum, use) => sum + use.sent, 0),
    Duration: Math.round(call.durationMs),
    ColdStarts: call.cold ? 1 : 0,
  });
}
