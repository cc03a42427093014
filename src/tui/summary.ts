import type { RouteQuality, RunView, Tally } from '../coordinator/reports/run-view.ts';
import type { RecordChanges } from '../core/record-changes/record-changes.ts';
import { changesText } from './changes.ts';
import { droppedText, formatAmount, formatBytes, formatCount, formatDuration, formatRate } from './format.ts';
import { qualityLines } from './quality.ts';
import { cleanText, type Line, paintLine, type Style } from './text.ts';

interface SummaryOptions {
  color?: boolean;
  quality?: readonly RouteQuality[];
  /** The pass that the quality is of, when it is not the present one. */
  qualityPass?: number | null;
  /** What the pass changed among the records. */
  changes?: RecordChanges;
}

const HEADLINES: Record<RunView['job']['state'], [text: string, style: Style]> = {
  running: ['is running', 'good'],
  waiting: ['waits for more URLs', 'goodBold'],
  stopping: ['is stopping', 'warn'],
  done: ['is done', 'goodBold'],
  stopped: ['was stopped', 'warn'],
  tripped: ['was stopped by its circuit breaker', 'badBold'],
  cancelled: ['was cancelled', 'warn'],
};

const REASONS_MAX = 6;

function reasonsText(tallies: readonly Tally[]): string {
  const shown = tallies
    .slice(0, REASONS_MAX)
    .map(({ code, count }) => `${cleanText(code)} ${formatCount(count)}`);
  if (tallies.length > REASONS_MAX) shown.push(`${tallies.length - REASONS_MAX} more reasons`);
  return shown.join(', ');
}

/** What a run came to: the text that stays when the dashboard is gone. */
export function renderSummary(view: RunView, options: SummaryOptions = {}): string {
  const { counters, job } = view;
  const [headline, style] = HEADLINES[job.state];
  const rows: [label: string, count: number, note: string, style?: Style][] = [
    [
      'accepted',
      counters.accepted,
      counters.rejected > 0 ? `${formatAmount(counters.rejected, 'source row')} rejected` : '',
    ],
    ['done', counters.done, counters.records > 0 ? formatAmount(counters.records, 'record') : '', 'goodBold'],
    ['unchanged', counters.unchanged, ''],
    ['skipped', counters.skipped, reasonsText(view.skips)],
    ['dead', counters.dead, reasonsText(view.dead), counters.dead > 0 ? 'badBold' : 'plain'],
    ['waiting', counters.pending + counters.leased, ''],
  ];
  // What is zero says nothing, except that nothing died.
  const shown = rows.filter(([label, count]) => count > 0 || ['accepted', 'done', 'dead'].includes(label));
  const numberWidth = Math.max(...shown.map(([, count]) => formatCount(count).length), 5);
  const pace = [
    `${formatRate(view.averagePagesPerSecond)} ${job.unit}/s`,
    formatAmount(counters.requests, 'request'),
    ...(counters.retries > 0 ? [formatAmount(counters.retries, 'retry', 'retries')] : []),
    formatBytes(counters.bytes),
  ];
  const lines: Line[] = [
    [[`${cleanText(job.name)} `, 'bold'], [headline, style], [` after ${formatDuration(view.elapsedMs)}`]],
    [],
    ...shown.map(
      ([label, count, note, valueStyle]): Line => [
        [`  ${label.padEnd(11)}`, 'faint'],
        [formatCount(count).padStart(numberWidth), valueStyle ?? 'plain'],
        ...(note === '' ? [] : [[`   ${note}`, 'faint'] as const]),
      ],
    ),
    [],
    ...qualityLines(options.quality ?? [], options.qualityPass ?? null),
    ...(options.changes ? [[['  changes    ', 'faint'], [changesText(options.changes)]] satisfies Line] : []),
    [['  pace       ', 'faint'], [pace.join(' · ')]],
    ...(counters.dropped === 0
      ? []
      : [
          [
            ['  dropped    ', 'faint'],
            [droppedText(counters.dropped), 'warn'],
          ] satisfies Line,
        ]),
    ...(job.dir === null ? [] : [[['  files      ', 'faint'], [cleanText(job.dir)]] satisfies Line]),
  ];
  return lines.map((line) => paintLine(line, options.color ?? false)).join('\n');
}
