import type { Verdict } from '../scenario.ts';
import type { Row } from './crawl-verdict.ts';
import { noiseText, printTable, verdictTable } from './tables.ts';

const RATIOS_MIN = { 'seine-none': 1.2, 'seine-webdataset': 1 };

export interface MediaData {
  date: string;
  machine: string;
  versions: Record<string, string>;
  pictures: number;
  distinct: number;
  pictureBytes: number;
  rounds: number;
  rows: Row[];
  /** Files that each contender left. */
  stored: Record<string, number>;
}

const COLUMNS = [
  'contender',
  'keeps',
  'pictures/s',
  'rounds',
  '÷ loop',
  'MB/s',
  'peak MB',
  'CPU µs/picture',
  'origin µs/picture',
  'pictures/s with start',
];
const count = (value: number): string =>
  Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en-US');
const measuredOf = (data: MediaData, id: string) => data.rows.find((row) => row.id === id)?.measured;

function cellsOf(row: Row, data: MediaData): string[] {
  const { measured } = row;
  if (!measured) return [row.label, row.keeps, `not measured: ${row.missing?.split('\n')[0] ?? ''}`];
  const loop = measuredOf(data, 'loop')?.pagesPerSecond ?? Number.NaN;
  return [
    row.label,
    row.keeps,
    count(measured.pagesPerSecond),
    `${count(measured.slowest)}–${count(measured.fastest)}`,
    `${(measured.pagesPerSecond / loop).toFixed(2)} ×`,
    count((measured.pagesPerSecond * data.pictureBytes) / 1e6),
    count(measured.peakMb),
    count(measured.cpuMicros),
    count(measured.originCpuMicros),
    count(measured.wallPagesPerSecond),
  ];
}

/** Pictures a second, as a multiple of the loop's. */
function judgeRate(data: MediaData, id: keyof typeof RATIOS_MIN, bar: string): Verdict {
  const loop = measuredOf(data, 'loop')?.pagesPerSecond;
  const own = measuredOf(data, id)?.pagesPerSecond;
  const ratio = loop === undefined || own === undefined ? undefined : own / loop;
  return {
    bar: `${bar} ≥ ${RATIOS_MIN[id].toFixed(1)} × the bare loop`,
    measured: ratio === undefined ? 'not measured' : `${ratio.toFixed(2)} ×`,
    passed: ratio === undefined ? undefined : ratio >= RATIOS_MIN[id],
  };
}

export function judgeMedia(data: MediaData): Verdict[] {
  return [
    judgeRate(data, 'seine-none', 'pictures hashed, deduped, stored, state durable'),
    {
      bar: 'the same bytes stored once',
      measured: `${data.stored['seine-none']} files for ${data.distinct} different pictures`,
      passed: measuredOf(data, 'seine-none') && data.stored['seine-none'] === data.distinct,
    },
    judgeRate(data, 'seine-webdataset', 'the same, packed as WebDataset'),
  ];
}

export function printMedia(data: MediaData): void {
  process.stdout.write('\n');
  printTable(
    COLUMNS,
    data.rows.map((row) => cellsOf(row, data)),
  );
}

export function mediaSection(data: MediaData, verdicts: Verdict[]): string {
  const rows = data.rows.map((row) => `| ${cellsOf(row, data).join(' | ')} |`);
  const { node, undici, origin } = data.versions;
  return `| ${COLUMNS.join(' | ')} |
|${COLUMNS.map((_, at) => (at < 2 ? '---' : '--:')).join('|')}|
${rows.join('\n')}

${verdictTable(verdicts)}

- ${data.pictures.toLocaleString('en-US')} URLs of ${data.pictureBytes / 1024} KiB pictures, ${data.distinct.toLocaleString('en-US')} of them different, served from memory by ${origin} on the same machine; 64 requests at once for everybody.
- The loop is one process that reads a list, downloads with an undici Pool, takes the MD5 and writes a file named by it: no state, no retries, no limits, no SHA-256, and a second download of the same bytes writes the file again. It cannot be continued after a crash.
- Seine reads the same list with two workers and keeps its state in SQLite as always.
- Machine: ${data.machine}. Node ${node}, undici ${undici}. ${data.date.slice(0, 10)}, ${data.rounds} round${data.rounds === 1 ? '' : 's'} in turns after a warm-up, medians. ${noiseText(data.rows)}
- Again: \`npm run bench -- media\`.`;
}
