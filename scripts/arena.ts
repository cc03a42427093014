import { randomInt } from 'node:crypto';
import { type ArenaResult, compete, hostsOf, isWithinBar, type Score } from '../test/sim/arena/arena.ts';
import { readOptions } from './read-options.ts';
import { replaceBetween } from './replace-between.ts';

const { values } = readOptions({
  start: 'npm run arena --',
  about: `Calibration and the steady pace against simulated hosts, on virtual time.`,
  options: {
    hosts: { count: 260, does: 'simulated hosts' },
    seed: { number: null, shown: 'a new one each time', does: 'repeats a run' },
    calibrate: { flag: true, does: 'calibrate only' },
    failures: { flag: true, does: 'list the hosts that are not within the bar' },
    write: { flag: true, does: 'put the result into docs/calibration.md' },
  },
});
const seed = values.seed ?? randomInt(2 ** 31);
const startedAt = Date.now();
const results: ArenaResult[] = [];
for (const host of hostsOf(values.hosts, seed)) results.push(compete(host.kind, host.seed, values.calibrate));

const groups = Map.groupBy(results, ({ kind }) => kind);
const lines = [
  '| host | within the bar | kept, median | refusals, median | throughput | refused | AutoThrottle | Crawlee |',
  '|---|--:|--:|--:|--:|--:|--:|--:|',
  ...[...groups].map(([kind, group]) => rowOf(kind, group)),
  rowOf('**all**', results),
];
const within = results.filter(isWithinBar).length / results.length;
const all = sumOf(results.map(({ seine }) => seine));
const text = [
  `${results.length} hosts of ${groups.size} kinds, seed ${seed}.`,
  '',
  ...lines,
  '',
  `Kept rate within 80–100 % of the limit with at most 20 refusals: ${percent(within)} of the hosts (bar: 90 %).`,
  ...(values.calibrate
    ? []
    : [
        `Refused in steady state: ${((all.refused / all.requests) * 100).toFixed(4)} % of ${all.requests} requests (bar: 0.01 %).`,
        `Throughput: ${percent(all.throughput)} of the limit (bar: 85 %).`,
      ]),
].join('\n');
process.stdout.write(`${text}\n`);
if (values.failures)
  for (const result of results.filter((each) => !isWithinBar(each)))
    process.stdout.write(`${storyOf(result)}\n`);
process.stdout.write(`${((Date.now() - startedAt) / 1_000).toFixed(0)} s\n`);
if (values.write) replaceBetween('docs/calibration.md', 'arena', text);

function rowOf(kind: string, group: readonly ArenaResult[]): string {
  const within = group.filter(isWithinBar).length;
  const seine = sumOf(group.map((result) => result.seine));
  const others = [group.map((result) => result.autoThrottle), group.map((result) => result.crawlee)].map(
    sumOf,
  );
  const cells = [
    `${within} of ${group.length}`,
    percent(median(group.map(({ kept }) => kept))),
    String(median(group.map(({ refusals }) => refusals))),
    percent(seine.throughput),
    `${((seine.refused / Math.max(1, seine.requests)) * 100).toFixed(3)} %`,
    ...others.map(
      ({ throughput, refused, requests }) =>
        `${percent(throughput)}, ${percent(refused / Math.max(1, requests))} refused`,
    ),
  ];
  return `| ${kind} | ${cells.join(' | ')} |`;
}

/** Requests together, throughput as the mean over the hosts. */
function sumOf(scores: readonly (Score | null)[]): Score {
  const sum = { throughput: 0, requests: 0, refused: 0 };
  for (const score of scores) {
    sum.throughput += (score?.throughput ?? 0) / scores.length;
    sum.requests += score?.requests ?? 0;
    sum.refused += score?.refused ?? 0;
  }
  return sum;
}

function storyOf({ kind, seed: hostSeed, limit, kept, refusals, calibration }: ArenaResult): string {
  const { end, evidence, windowMs } = calibration;
  const runs = evidence.map(
    ({ purpose, rate, sent, answered, refused, ms, verdict, reason }) =>
      `    ${purpose.padEnd(8)} ${(rate / limit).toFixed(3)} × limit, sent ${sent}, answered ${answered}, refused ${refused}, ${(ms / 1_000).toFixed(0)} s: ${verdict}, ${reason}`,
  );
  return `${kind}, seed ${hostSeed}: limit ${limit.toFixed(2)}/s, kept ${kept.toFixed(2)}, ${refusals} refusals, end ${end}, window ${windowMs / 1_000} s\n${runs.join('\n')}`;
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.995 && share > 0 ? 1 : 0)} %`;
}
