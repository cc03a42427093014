import { runPolitely } from '../../test/support/runs/polite-run.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

/** Of the permitted rate, the mean over hosts and runs. For a machine that does nothing else. */
const SHARE_MIN = 0.9;

const { values } = readOptions({
  start: 'npm run polite --',
  about: `The long form of the proof of politeness, and how much of the permitted rate is reached.`,
  options: {
    hosts: { count: 200, does: 'hosts of the crawl' },
    workers: { count: 4, does: 'worker threads' },
    rate: { number: 2, does: 'requests per second for each host' },
    restarts: { number: 6, does: 'how often the crawl is stopped, every other time with kill -9' },
    write: { flag: true, does: 'put the result into docs/politeness.md' },
  },
});
const hosts = values.hosts;
const workers = values.workers;
const rate = values.rate;
const restarts = values.restarts;
/** Some seconds of work in each run. */
const requestsPerRun = Math.ceil(rate * 6);
const ends = Array.from({ length: restarts }, (_, index) =>
  index % 2 === 0 ? ('SIGTERM' as const) : ('SIGKILL' as const),
);
const facts = await runPolitely({
  hosts,
  workers,
  rate,
  // The last run finishes what the others left; a slow machine gets further in each of them.
  pagesPerHost: requestsPerRun * (restarts + 1) * 2,
  ends,
  requestsPerRun,
});
process.stdout.write(`${JSON.stringify(facts)}\n`);

const kills = ends.filter((end) => end === 'SIGKILL').length;
const mean = facts.rates.reduce((sum, each) => sum + each, 0) / facts.rates.length;
const table = [
  '| hosts | threads | gentle stops | kill -9 | requests | permitted gap | smallest gap seen by a host | gaps under the permitted one | mean rate achieved |',
  '|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
  `| ${hosts} | ${workers} | ${restarts - kills} | ${kills} | ${facts.requests} | ${1_000 / rate} ms | ${facts.smallestGapMs.toFixed(1)} ms | ${facts.tooShort} | ${Math.round((mean / rate) * 100)} % |`,
].join('\n');
process.stdout.write(`${table}\n`);
if (values.write) replaceBetween('docs/politeness.md', 'polite', table);
if (mean / rate < SHARE_MIN)
  process.stdout.write(`the rate is below ${SHARE_MIN * 100} %; a busy machine costs some of it\n`);
const proven =
  mean / rate >= SHARE_MIN &&
  facts.tooShort === 0 &&
  facts.lost === 0 &&
  facts.withoutRobots === 0 &&
  facts.hostsSeen === hosts &&
  facts.codes.every((code, index) => code === (index === restarts ? 0 : index % 2 === 0 ? 130 : null));
process.exitCode = proven ? 0 : 1;
