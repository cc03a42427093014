import type { Notice, RunView } from '../coordinator/reports/run-view.ts';
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
    `${formatRate(view.pagesPerSecond)} ${job.unit}/s`,
    formatBytes(counters.bytes),
    ...(job.state === 'running' && view.etaMs !== null ? [etaText(view)] : []),
    ...(view.waitingFor === null ? [] : [narrowText(view.waitingFor)]),
  ];
  return parts.join(' · ');
}

interface PlainProgressOptions {
  output: { write(text: string): unknown };
  view: () => RunView;
  intervalMs?: number;
}

/** The first lines tell that it works; later ones fill logs. */
const PLAIN_INTERVAL_MS = 2_000;
const PLAIN_INTERVAL_MS_MAX = 30_000;

/** A line after two seconds, then ever more rarely: a short run prints only its last one. */
export function openPlainProgress(options: PlainProgressOptions): {
  print(text: string): void;
  close(finalText?: string): void;
} {
  const { output, view } = options;
  /** What was last seen among the notices, which are few: of a list that was found among the URLs, for example. */
  let seen = new Set<string>();
  const print = () => {
    const now = view();
    const notices = now.recent.filter(({ level }) => level === 'info');
    const keyOf = ({ at, text }: Notice) => `${at} ${text}`;
    for (const notice of notices) if (!seen.has(keyOf(notice))) output.write(`${narrowText(notice.text)}\n`);
    seen = new Set(notices.map(keyOf));
    output.write(`${plainLine(now)}\n`);
  };
  let waitMs = Math.max(PLAIN_INTERVAL_MS, options.intervalMs ?? 0);
  let timer: NodeJS.Timeout;
  const printLater = () => {
    timer = setTimeout(() => {
      print();
      waitMs = Math.max(waitMs, Math.min(PLAIN_INTERVAL_MS_MAX, waitMs * 2));
      printLater();
    }, waitMs).unref();
  };
  printLater();
  let open = true;
  return {
    print: (text) => void output.write(text),
    close(finalText) {
      if (!open) return;
      open = false;
      clearTimeout(timer);
      print();
      if (finalText !== undefined) output.write(`${finalText}\n`);
    },
  };
}
