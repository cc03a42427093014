import type { RunView } from '../coordinator/reports/run-view.ts';
import { formatBytes, formatCount, formatDuration, formatPercent, formatRate } from './format.ts';
import { etaText } from './sections.ts';
import { narrowText } from './text.ts';

/** For logs and pipes: the run in one line. */
export function plainLine(view: RunView): string {
  const { counters, job } = view;
  const parts = [
    `${formatDuration(view.elapsedMs)} ${narrowText(job.name)} ${job.state}`,
    formatPercent(view.fraction),
    `${formatCount(counters.done + counters.unchanged)} done`,
    `${formatCount(counters.pending + counters.leased)} left`,
    ...(counters.skipped > 0 ? [`${formatCount(counters.skipped)} skipped`] : []),
    ...(counters.dead > 0 ? [`${formatCount(counters.dead)} dead`] : []),
    ...(counters.dropped > 0 ? [`${formatCount(counters.dropped)} links dropped`] : []),
    `${formatRate(view.pagesPerSecond)} pages/s`,
    formatBytes(counters.bytes),
    ...(job.state === 'running' && view.etaMs !== null ? [etaText(view)] : []),
  ];
  return parts.join(' · ');
}

interface PlainProgressOptions {
  output: { write(text: string): unknown };
  view: () => RunView;
  intervalMs?: number;
}

const PLAIN_INTERVAL_MS = 2_000;

/** A line every two seconds at most, the first after two: a short run prints only its last one. */
export function openPlainProgress(options: PlainProgressOptions): { close(finalText?: string): void } {
  const { output, view } = options;
  const print = () => output.write(`${plainLine(view())}\n`);
  const timer = setInterval(print, Math.max(PLAIN_INTERVAL_MS, options.intervalMs ?? 0));
  timer.unref();
  let open = true;
  return {
    close(finalText) {
      if (!open) return;
      open = false;
      clearInterval(timer);
      print();
      if (finalText !== undefined) output.write(`${finalText}\n`);
    },
  };
}
