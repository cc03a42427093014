import { randomInt } from 'node:crypto';
import { TAIL_POLICIES } from '../src/core/tail/tail.ts';
import { competeAtTail, TAIL_KINDS, type TailScore } from '../test/sim/tail/webs.ts';
import { readOptions } from './read-options.ts';
import { replaceBetween } from './replace-between.ts';

const { values } = readOptions({
  start: 'npm run tail --',
  about: `What the last 1 % of the pages takes of the time of a crawl, with each policy of \`tail\`, on virtual time.`,
  options: {
    crawls: { count: 8, does: 'crawls of each kind, with each policy' },
    seconds: { count: 120, does: 'what each takes, about' },
    seed: { number: null, shown: 'a new one each time', does: 'repeats a run' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const seed = values.seed ?? randomInt(2 ** 31);
const BAR = 0.1;

type Scores = Awaited<ReturnType<typeof competeAtTail>>;
const results = new Map<string, Scores[]>();
for (const kind of Object.keys(TAIL_KINDS)) {
  const scores: Scores[] = [];
  for (let index = 0; index < values.crawls; index++)
    scores.push(await competeAtTail(kind, seed + index * 7_919, values.seconds));
  results.set(kind, scores);
}
const helped = [...results].filter(([kind]) => TAIL_KINDS[kind]!.isHelpable).flatMap(([, scores]) => scores);
const all = [...results.values()].flat();
const within = (policy: keyof Scores, scores: readonly Scores[]) =>
  `${scores.filter((score) => score[policy].tailShare <= BAR).length} of ${scores.length}`;
const gapLeast = Math.min(...all.flatMap((scores) => TAIL_POLICIES.map((policy) => scores[policy].gapLeast)));

const text = [
  `${all.length} crawls of ${results.size} kinds, about ${values.seconds} s each, seed ${seed}. What the last 1 % of the pages took of the time: the median, and the most.`,
  '',
  '| trouble | `wait` | `repeat` | `defer` | left for the next run |',
  '|---|--:|--:|--:|--:|',
  ...[...results].map(([kind, scores]) => rowOf(kind, scores)),
  '',
  `At most ${BAR * 100} % where another request helps: ${within('repeat', helped)} crawls with \`repeat\`, ${within('wait', helped)} with \`wait\`.`,
  `The shortest gap between two requests to a host was ${(gapLeast * 100).toFixed(1)} % of what the job allows.`,
].join('\n');
process.stdout.write(`${text}\n`);
if (values.write) replaceBetween('docs/reliability.md', 'tail', text);

function rowOf(kind: string, scores: readonly Scores[]): string {
  const shares = (policy: keyof Scores) => {
    const sorted = scores.map((score) => score[policy].tailShare).sort((a, b) => a - b);
    return `${percent(sorted[Math.floor(sorted.length / 2)]!)}, ${percent(sorted.at(-1)!)}`;
  };
  const left = scores.reduce((sum, { defer }: { defer: TailScore }) => sum + defer.pending, 0);
  return `| ${kind} | ${[shares('wait'), shares('repeat'), shares('defer'), left].join(' | ')} |`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
