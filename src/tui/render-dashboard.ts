import type { RunView } from '../coordinator/reports/run-view.ts';
import { droppedText, formatDuration } from './format.ts';
import { hostLines } from './host-table.ts';
import { plainLine } from './plain-progress.ts';
import {
  chartLines,
  counterLines,
  progressLine,
  recentLines,
  tallyLines,
  warningLines,
  workerLines,
} from './sections.ts';
import {
  cutEnd,
  cutMiddle,
  fitLine,
  type Line,
  narrowText,
  type Piece,
  paintLine,
  type Style,
  widthOf,
} from './text.ts';

interface FrameSize {
  columns: number;
  rows: number;
  color: boolean;
}

/** Wider than this, the eye loses the row. */
const COLUMNS_MAX = 120;
/** Below this there is no frame, only the line that logs get. */
const COLUMNS_MIN = 40;
/** The borders, the bar and the two lines of counters: always there. */
const ROWS_FIXED = 5;

/** A clock that leaps must not break the frame: 10,000 days are the widest number that fits. */
const ELAPSED_MS_MAX = 10_000 * 86_400_000;

const STATE_STYLES: Record<RunView['job']['state'], Style> = {
  running: 'good',
  waiting: 'good',
  stopping: 'warn',
  done: 'goodBold',
  stopped: 'warn',
  tripped: 'badBold',
  cancelled: 'warn',
};

/** One part of the frame between its fixed lines. */
interface Block {
  min: number;
  ideal: number;
  /** Left out unless so many rows remain for the others to grow into. */
  spare?: number;
  make(rows: number): Line[];
}

/** Rows for each block: the first ones get their least first, then all grow in turn. */
function shareRows(blocks: readonly Block[], rows: number): number[] {
  const given = blocks.map(() => 0);
  let left = rows;
  blocks.forEach((block, index) => {
    if (block.ideal < block.min || left < block.min + (block.spare ?? 0)) return;
    given[index] = block.min;
    left -= block.min;
  });
  for (let grown = true; grown && left > 0; ) {
    grown = false;
    blocks.forEach((block, index) => {
      const has = given[index]!;
      if (has === 0 || has >= block.ideal || left === 0) return;
      given[index] = has + 1;
      left--;
      grown = true;
    });
  }
  return given;
}

/** `├─ label ────┬─ second ────┤` */
function rule(
  width: number,
  ends: string,
  left: Line,
  middle?: { at: number; mark: string; label?: string },
): Line {
  const pieces: Piece[] = [[`${ends[0]}─`, 'line']];
  if (widthOf(left) > 0) pieces.push([' '], ...left, [' ']);
  if (middle !== undefined) {
    const gap = middle.at - widthOf(pieces);
    pieces.push([`${'─'.repeat(Math.max(0, gap))}${middle.mark}─`, 'line']);
    if (middle.label !== undefined) pieces.push([` ${middle.label} `, 'faint']);
  }
  pieces.push(['─'.repeat(Math.max(0, width - 1 - widthOf(pieces))), 'line'], [ends[1]!, 'line']);
  return pieces;
}

function framed(line: Line, width: number): Line {
  return [['│ ', 'line'], ...fitLine(line, width - 4), [' │', 'line']];
}

function topBorder(view: RunView, width: number): Line {
  const { name, state } = view.job;
  const right: Line = [
    [' '],
    [state, STATE_STYLES[state]],
    [' · ', 'faint'],
    [formatDuration(Math.min(view.elapsedMs, ELAPSED_MS_MAX))],
    [' '],
  ];
  const room = Math.max(0, width - widthOf(right) - 15);
  const left: Line = [
    ['╭─', 'line'],
    [' seine ', 'title'],
    ['── ', 'line'],
    [cutEnd(narrowText(name), room), 'bold'],
    [' '],
  ];
  const fill = '─'.repeat(Math.max(0, width - widthOf(left) - widthOf(right) - 2));
  return [...left, [fill, 'line'], ...right, ['─╮', 'line']];
}

function bottomBorder(view: RunView, width: number, split: number | null): Line {
  if (view.job.dir === null) {
    return rule(width, '╰╯', [], split === null ? undefined : { at: split, mark: '┴' });
  }
  return rule(width, '╰╯', [['files ', 'faint'], [cutMiddle(narrowText(view.job.dir), width - 14)]]);
}

function blocksOf(view: RunView, width: number) {
  const inner = width - 4;
  const split = Math.floor(width / 2);
  const lines = (list: Line[]) => list.map((line) => framed(line, width));
  const pair = (rows: number): Line[] => {
    const left = tallyLines(view.failures, split - 3, rows);
    const right = workerLines(view, width - split - 4, rows);
    return Array.from({ length: Math.max(left.length, right.length) }, (_, i) => [
      ['│ ', 'line'],
      ...fitLine(left[i] ?? [], split - 3),
      [' │ ', 'line'],
      ...fitLine(right[i] ?? [], width - split - 4),
      [' │', 'line'],
    ]);
  };
  const more = view.hostsTotal > 1 ? `hosts (${view.hostsTotal})` : 'hosts';
  const dropped: Block = {
    min: 1,
    ideal: view.counters.dropped > 0 ? 1 : 0,
    make: () => lines([[[droppedText(view.counters.dropped), 'warn']]]),
  };
  const warnings: Block = {
    min: 1,
    ideal: view.warnings.length + (view.waitingFor === null ? 0 : 1),
    make: (rows) => lines(warningLines(view, inner, rows)),
  };
  const why: Block = {
    min: 1,
    ideal: view.explanation && view.job.state === 'running' ? 1 : 0,
    make: () => lines([[[cutEnd(narrowText(view.explanation ?? ''), inner), 'faint']]]),
  };
  const chart: Block = { min: 1, ideal: 4, make: (rows) => lines(chartLines(view, inner, rows)) };
  const hosts: Block = {
    min: 3,
    ideal: view.hosts.length === 0 ? 0 : 2 + Math.min(12, view.hosts.length),
    make: (rows) => [rule(width, '├┤', [[more, 'faint']]), ...lines(hostLines(view, inner, rows - 1))],
  };
  const both: Block = {
    min: 2,
    ideal: 1 + Math.max(1, Math.min(8, Math.max(view.failures.length, view.workers.length))),
    make: (rows) => [
      rule(width, '├┤', [['failed attempts', 'faint']], { at: split, mark: '┬', label: 'workers' }),
      ...pair(rows - 1),
    ],
  };
  const recent: Block = {
    min: 2,
    ideal: view.recent.length === 0 ? 0 : 1 + Math.min(6, view.recent.length),
    make: (rows) => [
      rule(width, '├┤', [['recent', 'faint']], { at: split, mark: '┴' }),
      ...lines(recentLines(view, inner, rows - 1)),
    ],
  };
  const blank: Block = { min: 1, ideal: 1, spare: 4, make: () => lines([[]]) };
  return {
    blocks: [warnings, dropped, why, chart, hosts, both, recent, blank, blank, blank] as const,
    split,
  };
}

/** One frame, never larger than the size it is given; what matters least is left out first. */
export function renderDashboard(view: RunView, size: FrameSize): string {
  const width = Math.min(size.columns, COLUMNS_MAX);
  if (width < COLUMNS_MIN || size.rows < ROWS_FIXED) {
    return cutEnd(plainLine(view), Math.max(0, size.columns));
  }
  const { blocks, split } = blocksOf(view, width);
  const rows = shareRows(blocks, size.rows - ROWS_FIXED);
  const [warnings, dropped, why, chart, hosts, both, recent, ...blanks] = blocks.map((block, i) =>
    rows[i] === 0 ? [] : block.make(rows[i]!),
  );
  const [labels, values] = counterLines(view, width - 4);
  const frame: Line[] = [
    topBorder(view, width),
    ...blanks[2]!,
    framed(progressLine(view, width - 4), width),
    ...blanks[0]!,
    framed(labels, width),
    framed(values, width),
    ...warnings!,
    ...dropped!,
    ...why!,
    ...blanks[1]!,
    ...chart!,
    ...hosts!,
    ...both!,
    ...recent!,
    bottomBorder(view, width, both!.length > 0 && recent!.length === 0 ? split : null),
  ];
  return frame.map((line) => paintLine(line, size.color)).join('\n');
}
