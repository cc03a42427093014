import { type CrawlData, type Row, rateOf, rawBound } from './crawl-verdict.ts';
import { printTable } from './tables.ts';

const count = (value: number): string => Math.round(value).toLocaleString('en-US');
const ratio = (own: number, other: number | undefined): string =>
  other === undefined ? '–' : `${(own / other).toFixed(own / other < 0.1 ? 3 : 2)} ×`;
const cell = (value: number): string => (Number.isNaN(value) ? '–' : count(value));

const MODE_TITLES = { links: 'Links only', select: 'With title and price selected' } as const;

export const COLUMNS = [
  'contender',
  'keeps',
  'pages',
  'pages/s',
  'rounds',
  '÷ spider-rs',
  '÷ raw bound',
  'peak MB',
  'CPU µs/page',
  'origin µs/page',
  'pages/s with start',
] as const;

/** The cells of one contender, for the terminal and for Markdown. */
export function rowCells(row: Row, data: CrawlData): string[] {
  const { measured } = row;
  if (measured === undefined)
    return [row.label, row.keeps, `not measured: ${row.missing?.split('\n')[0] ?? ''}`];
  return [
    row.label,
    row.keeps,
    count(measured.pages),
    count(measured.pagesPerSecond),
    `${count(measured.slowest)}–${count(measured.fastest)}`,
    ratio(measured.pagesPerSecond, rateOf(data.rows, 'spider-links')),
    ratio(measured.pagesPerSecond, rawBound(data.rows)),
    cell(measured.peakMb),
    cell(measured.cpuMicros),
    cell(measured.originCpuMicros),
    count(measured.wallPagesPerSecond),
  ];
}

export function rowsByMode(data: CrawlData): { title: string; rows: Row[] }[] {
  return (['links', 'select'] as const)
    .map((mode) => ({ title: MODE_TITLES[mode], rows: data.rows.filter((row) => row.mode === mode) }))
    .filter(({ rows }) => rows.length > 0);
}

export function printRows(data: CrawlData): void {
  for (const { title, rows } of rowsByMode(data)) {
    process.stdout.write(`\n${title}\n`);
    printTable(
      COLUMNS,
      rows.map((row) => rowCells(row, data)),
    );
  }
}
