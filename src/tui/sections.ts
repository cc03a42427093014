import type { RunView, Tally, WorkerView } from '../coordinator/reports/run-view.ts';
import {
  formatBytes,
  formatCount,
  formatCountShort,
  formatDuration,
  formatPercent,
  formatRate,
} from './format.ts';
import { cutEnd, cutMiddle, fitLine, type Line, narrowText, type Piece, type Style } from './text.ts';

/** Parts of the dashboard. Each returns lines for the width it is given, and knows nothing of the others. */

export function etaText(view: RunView): string {
  const { state } = view.job;
  if (state !== 'running' && state !== 'stopping') return state;
  if (view.etaMs === null) return 'ETA –';
  return `ETA ${view.discovering && view.etaMs > 0 ? '≥ ' : ''}${formatDuration(view.etaMs)}`;
}

export function progressLine(view: RunView, width: number): Line {
  const { counters } = view;
  const share = (count: number) => (counters.accepted === 0 ? 0 : count / counters.accepted);
  const shares: { part: number; style: Style }[] = [
    { part: share(counters.dead), style: 'bad' },
    { part: share(counters.skipped), style: 'info' },
    { part: share(counters.unchanged), style: 'accent' },
    { part: share(counters.done), style: 'good' },
  ];
  // The widest right side there can be, so that the bar keeps its length while the numbers change.
  const percent = formatPercent(view.fraction).padStart(7);
  const eta = etaText(view).padStart(14);
  return [...bar(shares, width - percent.length - eta.length), [percent, 'bold'], [eta, 'faint']];
}

interface Counter {
  label: string;
  value: string;
  style: Style;
  /** Lower stays longer when the terminal is narrow. */
  rank: number;
}

function countersOf(view: RunView): Counter[] {
  const { counters } = view;
  const count = (value: number) => (value < 10_000_000 ? formatCount(value) : formatCountShort(value));
  return [
    { label: 'done', value: count(counters.done), style: 'goodBold', rank: 0 },
    {
      label: 'unchanged',
      value: count(counters.unchanged),
      style: 'bold',
      rank: counters.unchanged > 0 ? 5 : 20,
    },
    { label: 'waiting', value: count(counters.pending), style: 'bold', rank: 1 },
    { label: 'in flight', value: count(counters.leased), style: 'bold', rank: 8 },
    { label: 'skipped', value: count(counters.skipped), style: 'bold', rank: 4 },
    { label: 'dead', value: count(counters.dead), style: counters.dead > 0 ? 'badBold' : 'bold', rank: 2 },
    { label: 'retries', value: count(counters.retries), style: 'bold', rank: 9 },
    { label: 'records', value: count(counters.records), style: 'bold', rank: counters.records > 0 ? 5 : 20 },
    { label: 'data', value: formatBytes(counters.bytes), style: 'bold', rank: 6 },
    { label: `${view.job.unit}/s`, value: formatRate(view.pagesPerSecond), style: 'title', rank: 3 },
  ];
}

const COUNTER_WIDTH_MIN = 11;

export function counterLines(view: RunView, width: number): [labels: Line, values: Line] {
  const room = Math.max(1, Math.floor(width / COUNTER_WIDTH_MIN));
  const all = countersOf(view).filter((counter) => counter.rank < 20);
  const kept = new Set([...all].sort((a, b) => a.rank - b.rank).slice(0, room));
  const shown = all.filter((counter) => kept.has(counter));
  const cell = Math.floor(width / shown.length);
  const labels = shown.map(({ label }): Piece => [cutEnd(label, cell - 1).padEnd(cell), 'faint']);
  const values = shown.map(({ value, style }): Piece => [cutEnd(value, cell - 1).padEnd(cell), style]);
  return [labels, values];
}

export function chartLines(view: RunView, width: number, rows: number): Line[] {
  const side = 14;
  const room = Math.max(1, width - side);
  const peak = Math.max(0, ...view.history.slice(-room));
  const lines = columns(view.history, room, rows);
  return lines.map((line, index) => {
    const note =
      index === 0
        ? `peak ${formatRate(peak)}/s`
        : index === rows - 1
          ? `mean ${formatRate(view.averagePagesPerSecond)}/s`
          : '';
    return [
      [line, 'accent'],
      [note.padStart(side), 'faint'],
    ];
  });
}

export function tallyLines(tallies: readonly Tally[], width: number, rows: number): Line[] {
  if (tallies.length === 0) return [[['none', 'faint']]];
  const most = Math.max(...tallies.map((tally) => tally.count));
  const gauge = Math.max(0, Math.min(16, width - 30));
  return tallies.slice(0, rows).map(({ code, count }): Line => {
    const number = formatCountShort(count).padStart(7);
    const filled = gauge === 0 ? '' : '━'.repeat(Math.max(1, Math.round((count / most) * gauge)));
    const name = fitLine([[narrowText(code)]], Math.max(0, width - number.length - gauge - 1));
    return [...name, [filled.padEnd(gauge), 'bad'], [' '], [number]];
  });
}

export function workerLines(view: RunView, width: number, rows: number): Line[] {
  if (view.workers.length === 0) return [[['starting', 'faint']]];
  const quietMs = (worker: WorkerView) => Math.max(0, view.at - worker.lastSeenAt);
  return view.workers.slice(0, rows).map((worker): Line => {
    const word = width < 42 ? '' : worker.tasks === 1 ? ' task ' : ' tasks';
    const tasks = `${formatCountShort(worker.tasks)}${word}`.padStart(7);
    const rate = `${formatRate(worker.tasksPerSecond)}/s`.padStart(9);
    const seen =
      width < 36 ? '' : (quietMs(worker) < 1_500 ? 'now' : formatDuration(quietMs(worker))).padStart(9);
    const room = Math.max(0, width - tasks.length - rate.length - seen.length);
    return [[cutMiddle(narrowText(worker.name), room - 1).padEnd(room)], [tasks], [rate], [seen, 'faint']];
  });
}

const LEVEL_STYLES: Record<RunView['recent'][number]['level'], Style> = {
  info: 'plain',
  warn: 'warn',
  error: 'bad',
};

/** Why nothing moves, then the last warnings: what a person has to see. */
export function warningLines(view: RunView, width: number, rows: number): Line[] {
  const waiting: Line[] =
    view.waitingFor === null ? [] : [[[cutEnd(narrowText(view.waitingFor), width), 'badBold']]];
  const warnings = view.warnings.map(
    ({ text, level }): Line => [[cutEnd(narrowText(text), width), LEVEL_STYLES[level]]],
  );
  return [...waiting, ...warnings.slice(-Math.max(0, rows - waiting.length) || warnings.length)].slice(
    0,
    rows,
  );
}

/** A notice is `code  text` or just text; codes are lined up. The newest at the bottom. */
export function recentLines(view: RunView, width: number, rows: number): Line[] {
  const shown = view.recent.slice(-rows).map((notice) => {
    const end = notice.text.indexOf('  ');
    return {
      ...notice,
      code: narrowText(notice.text.slice(0, Math.max(0, end))),
      rest: narrowText(notice.text.slice(end + 1)),
    };
  });
  const codeWidth = Math.min(16, Math.max(0, ...shown.map(({ code }) => code.length)));
  return shown.map(({ at, level, code, rest }): Line => {
    const when = formatDuration(at - view.startedAt).padStart(7);
    const head = code === '' ? '' : cutEnd(code, codeWidth).padEnd(codeWidth + 1);
    const tail = cutMiddle(rest.trim(), width - when.length - 2 - head.length);
    return [
      [`${when}  `, 'faint'],
      [head, LEVEL_STYLES[level]],
      [tail, code === '' ? LEVEL_STYLES[level] : 'plain'],
    ];
  });
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;
const HEIGHTS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;

/** A bar of shares, each in its style, on a ground of `░`. The last share ends to an eighth of a column. */
function bar(shares: readonly { part: number; style: Style }[], width: number): Piece[] {
  const pieces: Piece[] = [];
  const shown = shares.filter((share) => share.part > 0);
  let sum = 0;
  let used = 0;
  shown.forEach(({ part, style }, index) => {
    sum = Math.min(1, sum + part);
    const exact = sum * width;
    const whole = index === shown.length - 1 ? Math.floor(exact + 1e-9) : Math.round(exact);
    // A share that is there at all is seen, however small: dead letters are few, and matter.
    const cells = Math.min(width - used, Math.max(whole - used, index === shown.length - 1 ? 0 : 1));
    const eighth = index === shown.length - 1 ? EIGHTHS[Math.floor((exact - whole) * 8)]! : '';
    const text = '█'.repeat(cells) + (used + cells < width ? eighth : '');
    pieces.push([text, style]);
    used += text.length;
  });
  if (used < width) pieces.push(['░'.repeat(width - used), 'line']);
  return pieces;
}

/** The newest `width` values as columns over `rows` lines, the largest filling them all. Top line first. */
function columns(values: readonly number[], width: number, rows: number): string[] {
  const shown = values.slice(-width);
  const most = Math.max(...shown, 1e-9);
  const eighths = shown.map((value) => {
    const height = Math.round((value / most) * rows * 8);
    return value > 0 ? Math.max(1, height) : 0;
  });
  const lines: string[] = [];
  for (let row = rows - 1; row >= 0; row--) {
    const cells = eighths.map((height) => HEIGHTS[Math.max(0, Math.min(8, height - row * 8))]!);
    lines.push(cells.join('').padEnd(width));
  }
  return lines;
}
