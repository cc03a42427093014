import { type FleetCrashFacts, runFleetCrashes } from '../../test/support/crash/fleet-crashes.ts';
import { FLEET_FAULTS } from '../../test/support/crash/fleet-faults.ts';
import { runPostgresCrashes } from '../../test/support/crash/postgres-crashes.ts';
import { runTwoCoordinators } from '../../test/support/runs/two-coordinators.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run crash-fleet --',
  about: `Breaks one part of a fleet after the other under a crawl. Of two coordinators, each is killed once, whatever --strikes says.`,
  options: {
    strikes: { count: 30, does: 'how often each part is broken' },
    pages: { count: 6_000, does: 'pages of the crawl' },
    seed: { number: Date.now() % 1_000_000, shown: 'a new one each time', does: 'repeats a run' },
    only: { text: '', does: 'parts, separated by commas', shown: 'all' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const NAMES = [...Object.keys(FLEET_FAULTS), 'postgres', 'coordinators'];
const wanted = values.only === '' ? NAMES : values.only.split(',');
const unknown = wanted.filter((name) => !NAMES.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`unknown: ${unknown.join(', ')}; there are ${NAMES.join(', ')}\n`);
  process.exit(2);
}

const rowOf = (facts: FleetCrashFacts): string => {
  const { fault, strikes, pages, lost, unreadable, refetched, slowestReturnMs, seed } = facts;
  const cells = [strikes, pages, lost, unreadable, refetched, `${Math.round(slowestReturnMs)} ms`, seed];
  return `| ${fault} | ${cells.join(' | ')} |`;
};

async function strike(name: string): Promise<FleetCrashFacts> {
  const strikes = values.strikes;
  const shared = { pages: values.pages, seed: values.seed };
  const onStrike = (times: number) => void process.stderr.write(`\r${name} ${times} `);
  if (name in FLEET_FAULTS)
    return runFleetCrashes(FLEET_FAULTS[name as keyof typeof FLEET_FAULTS], { ...shared, strikes, onStrike });
  if (name === 'coordinators') return killCoordinators(shared);
  const facts = await runPostgresCrashes({ ...shared, kills: strikes, onKill: onStrike });
  const { kills, forgotten, lost } = facts;
  return { ...facts, fault: 'kill -9 of PostgreSQL', strikes: kills, lost: lost + forgotten };
}

/** Requests of a host that come closer than this, as the site sees it, were not kept apart by anybody. */
const KEPT = 0.75;

async function killCoordinators({ pages, seed }: { pages: number; seed: number }): Promise<FleetCrashFacts> {
  const [hosts, rate] = [100, 5];
  const facts = await runTwoCoordinators({
    ...{ hosts, rate, batchSize: 60 },
    pagesPerHost: Math.ceil(pages / hosts),
  });
  const { kills, smallestGapMs, smallestArrivalGapMs, attempts } = facts;
  process.stderr.write(`${JSON.stringify(facts)}\n`);
  if (
    smallestGapMs < 1_000 / rate ||
    smallestArrivalGapMs < (KEPT * 1_000) / rate ||
    attempts !== facts.pages ||
    facts.refetched > kills * facts.inFlightMax
  )
    process.exitCode = 1;
  return { ...facts, seed, fault: 'kill -9 of one of two coordinators', strikes: kills };
}

const rows: string[] = [];
for (const name of wanted) {
  const facts = await strike(name);
  process.stderr.write('\n');
  rows.push(rowOf(facts));
  process.stdout.write(`${rows.at(-1)}\n`);
  const wished = name === 'coordinators' ? 2 : values.strikes;
  if (facts.strikes < wished || facts.lost > 0 || facts.unreadable > 0) process.exitCode = 1;
}
if (values.write) {
  const head =
    '| fault | times | pages | lost | unreadable pages | pages fetched again | slowest return | seed |\n|---|--:|--:|--:|--:|--:|--:|--:|';
  replaceBetween('docs/reliability.md', 'fleet-crash', `${head}\n${rows.join('\n')}`);
}
