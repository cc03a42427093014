import { escapeHtml } from '../text/escape-html.ts';
import type { RunEvidence } from './calibration.ts';
import type { HostProfile } from './host-profile.ts';
import { refusedShare } from './sequential-test.ts';

/** A picture of a calibration: for each rate that was tried the share of refusals with its 95 % interval. */

const WIDTH = 720;
const HEIGHT = 400;
const LABEL_WIDTH = 26;
const LEFT = 64;
const RIGHT = 24;
const TOP = 48;
const BOTTOM = 56;

interface Point {
  rate: number;
  answers: number;
  refused: number;
}

export function drawProfile(profile: HostProfile): string {
  const points = pointsOf(profile.evidence);
  const rates = [...points.map(({ rate }) => rate), ...(profile.rate === null ? [] : [profile.rate])];
  const low = Math.min(...rates, 1) / 1.2;
  const high = Math.max(...rates, 1) * 1.2;
  const x = (rate: number) => LEFT + (Math.log(rate / low) / Math.log(high / low)) * (WIDTH - LEFT - RIGHT);
  // Shares of less than a percent matter as much as those of ten: the axis is a root.
  const y = (share: number) => HEIGHT - BOTTOM - Math.sqrt(share) * (HEIGHT - TOP - BOTTOM);
  const text = (at: [number, number], words: string, more = '') =>
    `<text x="${round(at[0])}" y="${round(at[1])}" ${more}>${escapeHtml(words)}</text>`;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" role="img">`,
    `<title>${escapeHtml(`Calibration of ${profile.host}`)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text([LEFT, 24], summaryOf(profile), 'font-size="15"'),
    ...[0, 0.02, 0.1, 0.25, 0.5, 1].flatMap((share) => [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y(share))}" y2="${round(y(share))}" stroke="#ddd"/>`,
      text([LEFT - 8, y(share) + 4], `${share * 100} %`, 'text-anchor="end" fill="#555"'),
    ]),
    ...withRoom(
      points.map(({ rate }) => rate),
      x,
    ).map((rate) =>
      text(
        [x(rate), HEIGHT - BOTTOM + 18],
        shortRate(rate),
        'text-anchor="middle" fill="#555" font-size="9"',
      ),
    ),
    text(
      [(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16],
      'requests per second; a line is the 95 % interval of the share that was refused',
      'text-anchor="middle" fill="#555"',
    ),
    ...points.map((point) => {
      const { share, low: from, high: to } = refusedShare(point.refused, point.answers);
      const color = point.refused > 0 ? '#c0392b' : '#2471a3';
      return (
        `<line x1="${round(x(point.rate))}" x2="${round(x(point.rate))}" y1="${round(y(from))}" y2="${round(y(to))}" stroke="${color}"/>` +
        `<circle cx="${round(x(point.rate))}" cy="${round(y(share))}" r="4" fill="${color}"><title>${escapeHtml(`${shortRate(point.rate)}/s: ${point.refused} of ${point.answers} refused`)}</title></circle>`
      );
    }),
    ...(profile.rate === null ? [] : chosen(x(profile.rate), profile.rate, text)),
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

/** Rates whose labels have room beside each other; the title of each point has its rate, too. */
function withRoom(rates: readonly number[], x: (rate: number) => number): number[] {
  const shown: number[] = [];
  for (const rate of rates)
    if (shown.length === 0 || x(rate) - x(shown.at(-1)!) >= LABEL_WIDTH) shown.push(rate);
  return shown;
}

function chosen(
  at: number,
  rate: number,
  text: (at: [number, number], words: string, more?: string) => string,
): string[] {
  return [
    `<line x1="${round(at)}" x2="${round(at)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="#1e8449" stroke-width="2" stroke-dasharray="6 3"/>`,
    text([at, TOP - 6], `chosen: ${shortRate(rate)}/s`, 'text-anchor="middle" fill="#1e8449"'),
  ];
}

function summaryOf({ host, requests, refusals }: HostProfile): string {
  return `${host}: refusals by rate, from ${requests} requests with ${refusals} refusals`;
}

/** Runs at the same rate are one point. */
function pointsOf(evidence: readonly RunEvidence[]): Point[] {
  const points = new Map<string, Point>();
  for (const { rate, answered, refused } of evidence) {
    const key = shortRate(rate);
    const point = points.get(key) ?? { rate, answers: 0, refused: 0 };
    points.set(key, { rate, answers: point.answers + answered + refused, refused: point.refused + refused });
  }
  return [...points.values()].filter(({ answers }) => answers > 0).sort((a, b) => a.rate - b.rate);
}

function shortRate(rate: number): string {
  return String(Number(rate.toPrecision(3)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
