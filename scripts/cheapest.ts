import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { competeAtSite, type SiteResult, sitesOf } from '../test/sim/cheapest/compete.ts';
import { replaceBetween } from './replace-between.ts';

/**
 * `escalation.choose: cheapest` against an oracle that knows all chances and prices: `npm run cheapest`. Seeds are new each
 * time; `-- --seed 7` repeats one. `--write` puts the table into docs/cost.md.
 */

const { values } = parseArgs({
  options: {
    sites: { type: 'string', default: '280' },
    pages: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    worst: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
const pages = Number(values.pages);
const BAR = 0.15;

const results: SiteResult[] = [];
for (const site of sitesOf(Number(values.sites), seed))
  results.push(competeAtSite(site.kind, site.seed, pages));
const groups = Map.groupBy(results, ({ kind }) => kind);

const text = [
  `${results.length} sites of ${groups.size} kinds, ${pages} pages each, seed ${seed}. How much more than the oracle was paid:`,
  '',
  `| site | first ${pages / 2} pages: mean | median | worst in ten | the next ${pages / 2}: mean | \`lowest\`: first ${pages / 2} | spent on exploring | pages lost |`,
  '|---|--:|--:|--:|--:|--:|--:|--:|',
  ...[...groups].map(([kind, group]) => rowOf(kind, group)),
  rowOf('**all**', results),
  '',
  `Within ${BAR * 100} % of the oracle after the first ${pages / 2} pages: ${percent(results.filter((result) => overOf(result) <= BAR).length / results.length)} of the sites.`,
].join('\n');
process.stdout.write(`${text}\n`);
if (values.worst)
  for (const result of results.toSorted((a, b) => overOf(b) - overOf(a)).slice(0, 25))
    process.stdout.write(
      `${result.kind}, seed ${result.seed}: ${percent(overOf(result))} over, lost ${result.lost}\n`,
    );
if (values.write) replaceBetween('docs/cost.md', 'cheapest', text);

function rowOf(kind: string, group: readonly SiteResult[]): string {
  // Sites differ in their prices by orders of magnitude: each counts the same.
  const over = (of: (result: SiteResult) => number) =>
    percent(group.reduce((sum, result) => sum + of(result), 0) / group.length);
  const sorted = group.map(overOf).sort((a, b) => a - b);
  const cells = [
    over(overOf),
    percent(sorted[Math.floor(sorted.length / 2)]!),
    percent(sorted[Math.floor(sorted.length * 0.9)]!),
    over(({ cheapest, oracle }) => cheapest.second / oracle.second - 1),
    over(({ lowest, oracle }) => lowest.first / oracle.first - 1),
    over(({ explored, cheapest }) => explored / (cheapest.first + cheapest.second)),
    String(group.reduce((sum, { lost }) => sum + lost, 0)),
  ];
  return `| ${kind} | ${cells.join(' | ')} |`;
}

function overOf({ cheapest, oracle }: SiteResult): number {
  return cheapest.first / oracle.first - 1;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
