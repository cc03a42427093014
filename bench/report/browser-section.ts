import type { Verdict } from '../scenario.ts';
import type { Row } from './crawl-verdict.ts';
import { noiseText, printTable, verdictTable } from './tables.ts';

export interface BrowserData {
  date: string;
  machine: string;
  versions: Record<string, string>;
  /** Where the Chromium of everybody was found. */
  chromium: string;
  pages: number;
  parallel: number;
  rounds: number;
  rows: BrowserRow[];
}

export interface BrowserRow extends Row {
  /** Of a PNG, on average. */
  pictureBytes: number;
}

const COLUMNS = [
  'contender',
  'keeps',
  'pages/s',
  'rounds',
  'peak MB',
  'peak MB, shared once',
  'CPU ms/page',
  'pages/s with start',
  'KB a picture',
];
const decimal = (value: number): string => (Number.isNaN(value) ? '–' : value.toFixed(1));
const whole = (value: number): string =>
  Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en-US');
const measuredOf = (data: BrowserData, id: string) => data.rows.find((row) => row.id === id)?.measured;

function cellsOf(row: BrowserRow): string[] {
  const { measured } = row;
  if (!measured) return [row.label, row.keeps, `not measured: ${row.missing?.split('\n')[0] ?? ''}`];
  return [
    row.label,
    row.keeps,
    decimal(measured.pagesPerSecond),
    `${decimal(measured.slowest)}–${decimal(measured.fastest)}`,
    whole(measured.peakMb),
    whole(measured.peakShareMb),
    whole(measured.cpuMicros / 1_000),
    decimal(measured.wallPagesPerSecond),
    whole(row.pictureBytes / 1_000),
  ];
}

/** Undefined where the kernel does not tell. */
function isBelow(one: number, other: number): boolean | undefined {
  return Number.isNaN(one) || Number.isNaN(other) ? undefined : one < other;
}

/** Pages a second, as a multiple of Crawlee's. */
const RATIO_WITH_PICTURES = 1.3;
const RATIO_WITHOUT = 1.5;

export function judgeBrowser(data: BrowserData): Verdict[] {
  const pictures = 'pages with full-page pictures';
  return [
    ...judge(data, 'seine-fast', { what: pictures, ratio: RATIO_WITH_PICTURES, how: '' }),
    ...judge(data, 'seine-small', {
      ...{ what: pictures, ratio: RATIO_WITH_PICTURES },
      how: ", with PNGs packed as Crawlee's",
    }),
    ...judge(data, 'seine-html', {
      ...{ what: 'pages', ratio: RATIO_WITHOUT, how: ', without pictures' },
      against: 'crawlee-html',
    }),
  ];
}

function judge(
  data: BrowserData,
  id: string,
  {
    what,
    ratio,
    how,
    against = 'crawlee-browser',
  }: { what: string; ratio: number; how: string; against?: string },
): Verdict[] {
  const crawlee = measuredOf(data, against);
  const own = measuredOf(data, id);
  const both = crawlee !== undefined && own !== undefined;
  return [
    {
      bar: `${what} ≥ ${ratio} × Crawlee's at the same parallelism${how}`,
      measured: both ? `${(own.pagesPerSecond / crawlee.pagesPerSecond).toFixed(2)} ×` : 'not measured',
      passed: both ? own.pagesPerSecond >= ratio * crawlee.pagesPerSecond : undefined,
    },
    {
      bar: `peak memory of all processes below Crawlee's${how}`,
      measured: both ? `${whole(own.peakMb)} of ${whole(crawlee.peakMb)} MB` : 'not measured',
      passed: both ? own.peakMb < crawlee.peakMb : undefined,
    },
    {
      bar: `the same, with what processes share counted once${how}`,
      measured: both ? `${whole(own.peakShareMb)} of ${whole(crawlee.peakShareMb)} MB` : 'not measured',
      passed: both ? isBelow(own.peakShareMb, crawlee.peakShareMb) : undefined,
    },
  ];
}

export function printBrowser(data: BrowserData): void {
  process.stdout.write('\n');
  printTable(COLUMNS, data.rows.map(cellsOf));
}

export function browserSection(data: BrowserData, verdicts: Verdict[]): string {
  const rows = data.rows.map((row) => `| ${cellsOf(row).join(' | ')} |`);
  const { node, crawlee, origin } = data.versions;
  return `| ${COLUMNS.join(' | ')} |
|${COLUMNS.map((_, at) => (at < 2 ? '---' : '--:')).join('|')}|
${rows.join('\n')}

${verdictTable(verdicts)}

- ${data.pages.toLocaleString('en-US')} pages of 24 KB from a list, served from memory by ${origin} on the same machine; ${data.parallel} pages open at once in one browser for everybody, each taken at its load event, 1280 × 800, a PNG of the whole page where pictures are taken, the HTML of its DOM.
- Everybody runs the same Chromium (${data.chromium}). Memory is the highest sum over all processes seen: of resident memory (RSS), in which a page of memory that several processes share counts for each of them, and of proportional shares (PSS), in which it counts once.
- Machine: ${data.machine}. Node ${node}, Crawlee ${crawlee}. ${data.date.slice(0, 10)}, ${data.rounds} round${data.rounds === 1 ? '' : 's'} in turns after a warm-up, medians. ${noiseText(data.rows)}
- Again: \`npm run bench -- browser\`.`;
}
