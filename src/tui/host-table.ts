import type { HostView, RunView } from '../coordinator/reports/run-view.ts';
import { formatCount, formatCountShort, formatDuration, formatRate } from './format.ts';
import { cutMiddle, type Line, narrowText, type Piece, type Style } from './text.ts';

const HOST_STYLES: Record<HostView['state'], Style> = {
  active: 'good',
  throttled: 'warn',
  failing: 'bad',
  idle: 'faint',
};

interface Column {
  label: string;
  width: number;
  /** Shown from this width of the table on. */
  from: number;
  text(host: HostView): string;
  style?(host: HostView): Style;
}

const ms = (value: number | null) => (value === null ? '–' : formatDuration(value));

const HOST_COLUMNS: Column[] = [
  {
    label: 'state',
    width: 11,
    from: 66,
    text: (host) => host.state,
    style: (host) => HOST_STYLES[host.state],
  },
  { label: 'requests', width: 10, from: 76, text: (host) => formatCount(host.requests) },
  { label: 'done', width: 9, from: 0, text: (host) => formatCountShort(host.done) },
  {
    label: 'failed',
    width: 8,
    from: 0,
    text: (host) => formatCountShort(host.failed),
    style: (host) => (host.failed > 0 ? 'warn' : 'plain'),
  },
  { label: 'p50', width: 9, from: 86, text: (host) => ms(host.p50Ms) },
  { label: 'p95', width: 9, from: 50, text: (host) => ms(host.p95Ms) },
  { label: 'req/s', width: 8, from: 0, text: (host) => formatRate(host.requestsPerSecond) },
];

/** The header and as many hosts as fit into `rows` lines. */
export function hostLines(view: RunView, width: number, rows: number): Line[] {
  const shown = HOST_COLUMNS.filter((column) => width >= column.from);
  const nameWidth = Math.max(0, width - shown.reduce((sum, column) => sum + column.width, 0));
  const header: Line = [
    ['host'.padEnd(nameWidth), 'faint'],
    ...shown.map((column): Piece => [column.label.padStart(column.width), 'faint']),
  ];
  const lines = view.hosts
    .slice(0, rows - 1)
    .map(
      (host): Line => [
        [cutMiddle(narrowText(host.host), nameWidth - 1).padEnd(nameWidth)],
        ...shown.map(
          (column): Piece => [column.text(host).padStart(column.width), column.style?.(host) ?? 'plain'],
        ),
      ],
    );
  return [header, ...lines];
}
