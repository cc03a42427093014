/** From samples to one row per contender, and from rows to the verdict on each bar. Pure. */
import type { Contender, Mode } from '../contenders/contender.ts';
import type { Check, Sample } from '../measure.ts';
import type { Verdict } from '../scenario.ts';

const BARS = {
  linksToSpider: 1.7,
  linksToRaw: 0.5,
  linksCpuMicros: 280,
  linksMemoryMb: 300,
  selectToSpider: 1.5,
  selectToCrawlee: 20,
} as const;

export interface Row {
  id: string;
  label: string;
  mode: Mode;
  keeps: string;
  /** undefined when it could not be measured; `missing` says why. */
  measured?: {
    pages: number;
    pagesPerSecond: number;
    slowest: number;
    fastest: number;
    /** The same with the start and end of the process counted in. */
    wallPagesPerSecond: number;
    peakMb: number;
    /** The same, but what processes share counts once. */
    peakShareMb: number;
    cpuMicros: number;
    /** Without the start of processes, and with servers, where the contender says it. */
    runCpuMicros?: number;
    originCpuMicros: number;
    /** Pages per CPU second of contender and origin together. */
    pagesPerCpuSecond: number;
    othersShare: number;
  };
  samples: Sample[];
  check?: Check;
  missing?: string;
}

export interface CrawlData {
  date: string;
  machine: string;
  versions: Record<string, string>;
  site: { pages: number; bytesMean: number; markup: string };
  rounds: number;
  rows: Row[];
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return sorted.length === 0 ? Number.NaN : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function summarise(
  contender: Pick<Contender, 'id' | 'label' | 'mode' | 'keeps'>,
  samples: Sample[],
  check?: Check,
  missing?: string,
): Row {
  const { id, label, mode, keeps } = contender;
  const row: Row = { id, label, mode, keeps, samples };
  if (check !== undefined) row.check = check;
  if (missing !== undefined) return { ...row, missing };
  const rates = samples.map((sample) => sample.pages / sample.seconds);
  row.measured = {
    pages: median(samples.map((sample) => sample.pages)),
    pagesPerSecond: median(rates),
    slowest: Math.min(...rates),
    fastest: Math.max(...rates),
    wallPagesPerSecond: median(samples.map((sample) => sample.pages / sample.wallSeconds)),
    peakMb: Math.max(...samples.map((sample) => sample.peakBytes)) / 1e6,
    peakShareMb: Math.max(...samples.map((sample) => sample.peakShareBytes)) / 1e6,
    cpuMicros: median(samples.map((sample) => (sample.cpuSeconds / sample.pages) * 1e6)),
    originCpuMicros: median(samples.map((sample) => (sample.originCpuSeconds / sample.pages) * 1e6)),
    pagesPerCpuSecond: median(
      samples.map((sample) => sample.pages / (sample.cpuSeconds + sample.originCpuSeconds)),
    ),
    othersShare: Math.max(...samples.map((sample) => sample.othersShare)),
  };
  const runs = samples.flatMap(({ runCpuSeconds, pages }) =>
    runCpuSeconds === undefined ? [] : [(runCpuSeconds / pages) * 1e6],
  );
  if (runs.length > 0) row.measured.runCpuMicros = median(runs);
  return row;
}

export function rateOf(rows: Row[], id: string): number | undefined {
  return find(rows, id)?.pagesPerSecond;
}

/** The faster of the two raw variants: with two cores a second thread may take from the origin. */
export function rawBound(rows: Row[]): number | undefined {
  const rates = [rateOf(rows, 'raw-1'), rateOf(rows, 'raw-2')].filter((rate) => rate !== undefined);
  return rates.length === 0 ? undefined : Math.max(...rates);
}

function find(rows: Row[], id: string): Row['measured'] {
  return rows.find((row) => row.id === id)?.measured;
}

/** Judged by the clock. The ratio per CPU second stands beside it: a busy machine moves that too, but less. */
function atLeast(bar: string, own: Row['measured'], other: Row['measured'], ratio: number): Verdict {
  if (own === undefined || other === undefined) return { bar, measured: 'not measured', passed: undefined };
  const byClock = own.pagesPerSecond / other.pagesPerSecond;
  const byCpu = own.pagesPerCpuSecond / other.pagesPerCpuSecond;
  const cpuText = Number.isNaN(byCpu) ? '' : ` (${byCpu.toFixed(2)} × per CPU second)`;
  return { bar, measured: `${byClock.toFixed(2)} ×${cpuText}`, passed: byClock >= ratio };
}

function atMost(bar: string, own: number | undefined, most: number, unit: string): Verdict {
  if (own === undefined || Number.isNaN(own)) return { bar, measured: 'not measured', passed: undefined };
  return { bar, measured: `${Math.round(own)} ${unit}`, passed: own <= most };
}

export function judge(rows: Row[]): Verdict[] {
  const links = find(rows, 'seine-links');
  const select = find(rows, 'seine-select');
  // spider-rs has no selectors: its best figure counts in both modes.
  const spider = find(rows, 'spider-links');
  const raw = rawBound(rows);
  const complete = rows.filter((row) => row.id.startsWith('seine') && row.check !== undefined);
  return [
    atLeast(`links only ≥ ${BARS.linksToSpider} × spider-rs`, links, spider, BARS.linksToSpider),
    {
      bar: `links only ≥ ${BARS.linksToRaw} × the raw bound`,
      ...(links === undefined || raw === undefined
        ? { measured: 'not measured', passed: undefined }
        : {
            measured: `${(links.pagesPerSecond / raw).toFixed(2)} ×`,
            passed: links.pagesPerSecond / raw >= BARS.linksToRaw,
          }),
    },
    atMost(
      `links only: CPU of a page ≤ ${BARS.linksCpuMicros} µs`,
      links?.cpuMicros,
      BARS.linksCpuMicros,
      'µs',
    ),
    atMost(`links only: memory ≤ ${BARS.linksMemoryMb} MB`, links?.peakMb, BARS.linksMemoryMb, 'MB'),
    atLeast(`with selectors ≥ ${BARS.selectToSpider} × spider-rs`, select, spider, BARS.selectToSpider),
    atLeast(
      `with selectors ≥ ${BARS.selectToCrawlee} × Crawlee`,
      select,
      find(rows, 'crawlee-select'),
      BARS.selectToCrawlee,
    ),
    {
      bar: 'every page requested exactly once',
      measured:
        complete.map(({ check }) => `${check!.distinct} pages, ${check!.repeated} twice`).join('; ') ||
        'not measured',
      passed:
        complete.length === 0
          ? undefined
          : complete.every(({ check, measured }) => {
              return check!.repeated === 0 && check!.refused === 0 && check!.distinct === measured?.pages;
            }),
    },
  ];
}
