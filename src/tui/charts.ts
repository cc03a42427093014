import type { Piece, Style } from './text.ts';

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;
const HEIGHTS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'] as const;

/** A bar of shares, each in its style, on a ground of `░`. The last share ends to an eighth of a column. */
export function bar(shares: readonly { part: number; style: Style }[], width: number): Piece[] {
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
export function columns(values: readonly number[], width: number, rows: number): string[] {
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
