import { randomInt } from 'node:crypto';
import { competeAtSite, type SiteResult, sitesOf } from '../test/sim/cheapest/compete.ts';
import { readOptions } from './read-options.ts';
import { replaceBetween } from './replace-between.ts';

const { values } = readOptions({
  start: 'npm run cheapest --',
  about: `\`escalation.choose: cheapest\` against an oracle that knows all chances and prices.`,
  options: {
    sites: { count: 280, does: 'simulated sites' },
    pages: { count: 2_000, does: 'pages of each' },
    seed: { number: null, shown: 'a new one each time', does: 'repeats a run' },
    worst: { flag: true, does: 'list the sites that were paid most over the oracle' },
    write: { flag: true, does: 'put the result into docs/cost.md' },
  },
});
const seed = values.seed ?? randomInt(2 ** 31);
const pages = values.pages;
const BAR = 0.15;

const results: SiteResult[] = [];
for (const site of sitesOf(values.sites, seed)) results.push(competeAtSite(site.kind, site.seed, pages));
const groups = Map.groupBy(results, ({ kind }) => kind);

const text = [
  `${results.length} sites of ${groups.size} kinds, ${pages} pages each, seed ${seed}. How much more than the oracle was paid:`,
  '',
  `| site | first ${pages / 2} pages: mean | median | worst in ten | the next ${pages / 2}: mean | \`lowest\`: first ${pages / 2} | spent on exploring | pages lost | by the oracle |`,
  '|---|--:|--:|--:|--:|--:|--:|--:|--:|',
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
    String(group.reduce((sum, { lostByOracle }) => sum + lostByOracle, 0)),
  ];
  return `| ${kind} | ${cells.join(' | ')} |`;
}

function overOf({ cheapest, oracle }: SiteResult): number {
  return cheapest.first / oracle.first - 1;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
