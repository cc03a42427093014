import type { Verdict } from '../scenario.ts';
import type { Row } from './crawl-verdict.ts';

const QUIET_SHARE = 0.1;

/** What each bar asks for, and what was measured. */
export function verdictTable(verdicts: readonly Verdict[]): string {
  return [
    '| bar | measured | verdict |',
    '|---|--:|---|',
    ...verdicts.map(({ bar, measured, passed }) => {
      const word = passed === undefined ? 'not judged' : passed ? 'met' : '**not met**';
      return `| ${bar} | ${measured} | ${word} |`;
    }),
  ].join('\n');
}

/** How much other programs took, and what that says of the figures. */
export function noiseText(rows: readonly Row[]): string {
  const share = Math.max(0, ...rows.map((row) => row.measured?.othersShare ?? 0));
  if (!(share > QUIET_SHARE)) return 'Other programs took under 10 % of the machine in every round.';
  return `Other programs took up to ${Math.round(share * 100)} % of the machine in a round: these figures are provisional, and the verdicts with them.`;
}

/** Prints rows under their columns, of which the first two are words. A shorter row says why it was not measured. */
export function printTable(columns: readonly string[], rows: readonly string[][]): void {
  const whole = [[...columns], ...rows];
  const widths = columns.map((_, at) =>
    Math.max(...whole.map((cells) => (cells.length === columns.length ? cells[at]!.length : 0))),
  );
  for (const cells of whole) {
    const line = cells.map((text, at) => (at < 2 ? text.padEnd(widths[at]!) : text.padStart(widths[at]!)));
    process.stdout.write(`  ${line.join('  ').trimEnd()}\n`);
  }
}
