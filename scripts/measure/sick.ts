import { crawlSickPages, type Sickness } from '../../test/support/runs/sick-run.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run sick --',
  about: `Pages that always fail must not slow down the others of their host. Each row is compared with the same healthy pages
alone, measured in the same run of this script.`,
  options: {
    hosts: { count: 4, does: 'hosts of the crawl' },
    pages: { count: 64, does: 'healthy pages of each host' },
    rate: { number: 20, does: 'requests per second for each host' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const hosts = values.hosts;
const healthy = values.pages;
const rate = values.rate;
const SHARES = [0.05, 0.1, 0.2];
const SICKNESSES: Sickness[] = ['503', '500', 'reset', 'timeout'];
/** A page that does not answer holds a connection for as long as the timeout. */
const RATIO_MAX: Record<Sickness, number> = { '503': 1.5, '500': 1.5, reset: 1.5, timeout: 2 };

const seconds = (ms: number) => (ms / 1_000).toFixed(1);
const run = (sickness: Sickness, sick: number) =>
  crawlSickPages({ sickness, sick, healthy, hosts, rate, untilServed: true });
const alone = await run('500', 0);
process.stdout.write(`alone: ${seconds(alone.ms)} s\n`);
const rows: string[] = [];
let isMet = alone.served === healthy * hosts;
for (const sickness of SICKNESSES)
  for (const share of SHARES) {
    const sick = Math.round((healthy * share) / (1 - share));
    const { ms, served } = await run(sickness, sick);
    const ratio = ms / alone.ms;
    isMet &&= served === healthy * hosts && ratio <= RATIO_MAX[sickness];
    rows.push(
      `| ${sickness} | ${sick} of ${healthy + sick} | ${served} of ${healthy * hosts} | ${seconds(ms)} s | ${ratio.toFixed(2)} × | ${RATIO_MAX[sickness]} × |`,
    );
    process.stdout.write(`${rows.at(-1)}\n`);
  }
const table = [
  `| sick pages answer | sick pages of a host | healthy pages fetched | time | ÷ healthy pages alone (${seconds(alone.ms)} s) | bar |`,
  '|---|--:|--:|--:|--:|--:|',
  ...rows,
].join('\n');
process.stdout.write(`\n${table}\n`);
if (values.write) replaceBetween('docs/reliability.md', 'sick', table);
process.exitCode = isMet ? 0 : 1;
