import { readFileSync, writeFileSync } from 'node:fs';
import { escapeHtml } from '../../src/core/text/escape-html.ts';
import { renderDashboard } from '../../src/tui/render-dashboard.ts';
import { readOptions } from '../read-options.ts';

/** Letters are text; lines and blocks are drawn as shapes, so that they meet in every font. */

interface Cell {
  char: string;
  color: string;
  bold: boolean;
}

const CELL = { width: 9, height: 20 };
const MARGIN = { x: 18, top: 54, bottom: 18 };
const INK = '#d6deeb';
/** The sixteen colours, in the order of their codes. */
const PALETTE = [
  ...['#1b2733', '#ff6b6b', '#7bd88f', '#f2c55c', '#6cb6ff', '#c792ea', '#5ccfe6', '#d6deeb'],
  ...['#54657a', '#ff8787', '#a3e8b2', '#ffd980', '#95caff', '#ddb3f5', '#8be0f0', '#ffffff'],
];

function color256(index: number): string {
  if (index < 16) return PALETTE[index]!;
  if (index >= 232) {
    const level = 8 + (index - 232) * 10;
    return `rgb(${level},${level + 4},${level + 10})`;
  }
  const step = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return `rgb(${step(Math.floor(cube / 36))},${step(Math.floor(cube / 6) % 6)},${step(cube % 6)})`;
}

function applySgr(codes: number[], pen: { color: string; bold: boolean }): void {
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) Object.assign(pen, { color: INK, bold: false });
    else if (code === 1) pen.bold = true;
    else if (code === 22) pen.bold = false;
    else if (code >= 30 && code <= 37) pen.color = PALETTE[code - 30]!;
    else if (code >= 90 && code <= 97) pen.color = PALETTE[code - 82]!;
    else if (code === 39) pen.color = INK;
    else if (code === 38 && codes[i + 1] === 5) {
      pen.color = color256(codes[i + 2] ?? 7);
      i += 2;
    }
  }
}

function parseFrame(text: string): Cell[][] {
  const pen = { color: INK, bold: false };
  return text
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
    .map((line) => {
      const cells: Cell[] = [];
      for (const [part, codes] of line.matchAll(/\u001b\[([\d;]*)m|\u001b\[[^a-zA-Z]*[a-zA-Z]|./gu)) {
        if (codes !== undefined) applySgr(codes.split(';').map(Number), pen);
        else if (!part.startsWith('\u001b')) cells.push({ char: part, ...pen });
      }
      return cells;
    });
}

const BLOCKS = '▁▂▃▄▅▆▇█';
const EIGHTHS = '█▉▊▋▌▍▎▏';
/** Arms of a box character: up, right, down, left. */
const ARMS: Record<string, string> = {
  '─': 'rl',
  '━': 'rl',
  '│': 'ud',
  '├': 'urd',
  '┤': 'udl',
  '┬': 'rdl',
  '┴': 'url',
  '┼': 'urdl',
};
const CORNERS: Record<string, string> = {
  '╭': 'M4.5 20 V16 Q4.5 10 9 10',
  '╮': 'M0 10 Q4.5 10 4.5 16 V20',
  '╰': 'M4.5 0 V4 Q4.5 10 9 10',
  '╯': 'M0 10 Q4.5 10 4.5 4 V0',
};
const ARM_PATHS: Record<string, string> = { u: 'M4.5 10V0', r: 'M4.5 10H9', d: 'M4.5 10V20', l: 'M4.5 10H0' };

/** The shape of a run of one character, or null when it is a letter. Neighbours are one shape: no seams. */
function shape(char: string, count: number, x: number, y: number, color: string): string | null {
  const width = CELL.width * count;
  const rect = (dx: number, dy: number, w: number, h: number, extra = '') =>
    `<rect x="${x + dx}" y="${y + dy}" width="${w}" height="${h}" fill="${color}"${extra}/>`;
  if (char === '░') return rect(0, 3, width, 14, ' opacity=".55"');
  if (char === '━') return rect(0, 8, width, 5, ' rx="1"');
  if (char === '─') return rect(0, 9.4, width, 1.2);
  if (ARMS[char] !== undefined || CORNERS[char] !== undefined) {
    const path = CORNERS[char] ?? [...ARMS[char]!].map((arm) => ARM_PATHS[arm]).join('');
    return `<path transform="translate(${x} ${y})" d="${path}" fill="none" stroke="${color}" stroke-width="1.2"/>`;
  }
  return null;
}

/** Blocks of a chart fill their cell from below; those of the progress bar leave air above and below. */
function block(char: string, x: number, y: number, color: string, inBar: boolean): string | null {
  const eighth = EIGHTHS.indexOf(char);
  if (inBar && eighth >= 0) {
    const width = (CELL.width * (8 - eighth)) / 8;
    const ground = `<rect x="${x}" y="${y + 3}" width="${CELL.width}" height="14" fill="${color256(240)}" opacity=".55"/>`;
    const filled = `<rect x="${x}" y="${y + 3}" width="${width + (eighth === 0 ? 0.4 : 0)}" height="14" fill="${color}"/>`;
    return eighth === 0 ? filled : ground + filled;
  }
  const height = BLOCKS.indexOf(char) + 1;
  if (height === 0) return null;
  const tall = (CELL.height * height) / 8;
  return `<rect x="${x}" y="${y + CELL.height - tall}" width="${CELL.width + 0.4}" height="${tall}" fill="${color}"/>`;
}

function drawRow(cells: Cell[], y: number): string {
  const out: string[] = [];
  const inBar =
    cells.some((cell) => cell.char === '░' || EIGHTHS.slice(1).includes(cell.char)) ||
    /█ +100 %/.test(cells.map((cell) => cell.char).join(''));
  for (let i = 0; i < cells.length; ) {
    const { char, color, bold } = cells[i]!;
    const x = MARGIN.x + i * CELL.width;
    const drawn = block(char, x, y, color, inBar);
    if (drawn !== null) {
      out.push(drawn);
      i++;
      continue;
    }
    let end = i + 1;
    const same = (cell: Cell) => cell.color === color && cell.bold === bold;
    if (shape(char, 1, x, y, color) !== null) {
      const joins = '─━░'.includes(char);
      while (joins && cells[end]?.char === char && same(cells[end]!)) end++;
      out.push(shape(char, end - i, x, y, color)!);
    } else if (char !== ' ') {
      // Up to the next gap of two blanks or change of style; textLength keeps the columns in any font.
      const ends = (at: number) => {
        const cell = cells[at];
        if (
          cell === undefined ||
          shape(cell.char, 1, 0, 0, '') !== null ||
          block(cell.char, 0, 0, '', inBar) !== null
        )
          return true;
        return cell.char === ' '
          ? (cells[at + 1]?.char ?? ' ') === ' ' || !same(cells[at + 1]!)
          : !same(cell);
      };
      while (!ends(end)) end++;
      const text = cells
        .slice(i, end)
        .map((cell) => cell.char)
        .join('');
      const weight = bold ? ' font-weight="700"' : '';
      out.push(
        `<text x="${x}" y="${y + 14.5}" textLength="${(end - i) * CELL.width}" fill="${color}"${weight}>${escapeHtml(text)}</text>`,
      );
    }
    i = end;
  }
  return out.join('');
}

function pictureOf(frame: string, title: string): string {
  const rows = parseFrame(frame);
  const columns = Math.max(...rows.map((row) => row.length));
  const width = columns * CELL.width + MARGIN.x * 2;
  const height = rows.length * CELL.height + MARGIN.top + MARGIN.bottom;
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, i) => `<circle cx="${24 + i * 20}" cy="20" r="6" fill="${fill}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeHtml(title)}">
<rect width="${width}" height="${height}" rx="10" fill="#101a24"/>
<path d="M0 40V10A10 10 0 0 1 10 0H${width - 10}A10 10 0 0 1 ${width} 10V40Z" fill="#1b2733"/>
${dots.join('')}
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14.5" xml:space="preserve">
<text x="${width / 2}" y="25" text-anchor="middle" fill="#8b9bb0" font-size="13">${escapeHtml(title)}</text>
${rows.map((row, i) => drawRow(row, MARGIN.top + i * CELL.height)).join('\n')}
</g>
</svg>
`;
}

const { words } = readOptions({
  start: 'npx node scripts/docs/dashboard-picture.ts',
  about: `Turns a frame of the dashboard, as the terminal gets it or as JSON of \`view()\`, into an SVG of a terminal window:

  frame.ansi docs/dashboard.svg
  view.json docs/dashboard.svg [columns] [rows]`,
  words: { shown: 'file', max: 4 },
});
const [input, output, columns = '100', rows = '30'] = words;
if (input === undefined || output === undefined) {
  process.stderr.write('name a frame and a picture (--help says how)\n');
  process.exit(2);
}
const text = readFileSync(input, 'utf8');
const frame = input.endsWith('.json')
  ? renderDashboard(JSON.parse(text), { columns: Number(columns), rows: Number(rows), color: true })
  : text;
writeFileSync(output, pictureOf(frame, 'seine run'));
