/** The many scenario: jobs side by side in one server. */
import { loadavg } from 'node:os';
import { type FinishedFacts, startWithFinished } from './many/finished.ts';
import { type ManyHosts, openManyHosts } from './many/origin.ts';
import { type OvertakeFacts, overtake } from './many/overtake.ts';
import { median } from './many/server.ts';
import { crawlTogether, type ShareFacts } from './many/share.ts';
import { describeMachine } from './report/machine.ts';
import { verdictTable } from './report/tables.ts';
import type { BenchOptions, Scenario, ScenarioResult, Verdict } from './scenario.ts';
import type { Scratch } from './scratch.ts';

const HOSTS = 50;
const JOBS = 50;
const URGENT_URLS = 100;
/** With fewer URLs, all jobs run at once for some seconds only, and a share is what a few batches make it. */
const SHARED_TIMES = 15;
/** More than is fetched in a round. */
const CRAWL_PER_ROUND = 40_000;
/** Rounds of a second or less: there may be more of them. A median of five varied by half. */
const SHORT_ROUNDS = 9;

interface Data {
  machine: string;
  /** What else the machine had to do. */
  load: number;
  rounds: number;
  share: { one: ShareFacts[]; many: ShareFacts[] } | null;
  urgent: OvertakeFacts | null;
  finished: FinishedFacts | null;
}

async function run({ pages, rounds, only }: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const origin = await openManyHosts(scratch, HOSTS);
  const wants = (part: string) => only.length === 0 || only.some((id) => part.startsWith(id));
  const shortRounds = Math.max(rounds, SHORT_ROUNDS);
  const data: Data = {
    ...{ machine: describeMachine(), load: loadavg()[0]!, rounds },
    share: wants('share')
      ? await compareShares(scratch, origin, { urls: pages * SHARED_TIMES, rounds })
      : null,
    urgent: wants('urgent')
      ? await overtake(scratch, origin, {
          // It must not end before the last round.
          crawl: Math.max(pages * 50, (shortRounds + 1) * CRAWL_PER_ROUND),
          urls: URGENT_URLS,
          rounds: shortRounds,
        })
      : null,
    finished: wants('finished')
      ? await startWithFinished(scratch, { jobs: pages / 2, rounds: shortRounds })
      : null,
  };
  return { verdicts: judge(data), data, section: sectionOf(data) };
}

/** In turns, so that what else the machine does meets both. */
async function compareShares(
  scratch: Scratch,
  origin: ManyHosts,
  { urls, rounds }: { urls: number; rounds: number },
): Promise<Data['share']> {
  const [one, many]: [ShareFacts[], ShareFacts[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    one.push(await crawlTogether(scratch, origin, { jobs: 1, urls }));
    many.push(await crawlTogether(scratch, origin, { jobs: JOBS, urls }));
    const [alone, together] = [one.at(-1)!, many.at(-1)!];
    process.stderr.write(
      `round ${round + 1}: one job ${alone.urlsPerSecond.toFixed(0)}/s, ${JOBS} jobs ${together.urlsPerSecond.toFixed(0)}/s, shares ${together.least.toFixed(2)}–${together.most.toFixed(2)}\n`,
    );
  }
  return { one, many };
}

function judge({ share, urgent, finished }: Data): Verdict[] {
  return [
    ...(share ? judgeShare(share) : []),
    ...(urgent ? judgeUrgent(urgent) : []),
    ...(finished ? judgeFinished(finished) : []),
  ];
}

function judgeShare({ one, many }: NonNullable<Data['share']>): Verdict[] {
  const ratio = median(many.map(({ urlsPerSecond }, at) => urlsPerSecond / one[at]!.urlsPerSecond));
  const rate = (facts: ShareFacts[]) => median(facts.map(({ urlsPerSecond }) => urlsPerSecond)).toFixed(0);
  const [least, most] = [median(many.map((each) => each.least)), median(many.map((each) => each.most))];
  return [
    {
      bar: `each of ${JOBS} jobs over ${HOSTS} hosts gets its share within 20 %`,
      measured: `${least.toFixed(2)} to ${most.toFixed(2)} of it`,
      passed: least >= 0.8 && most <= 1.2,
    },
    {
      bar: `${JOBS} jobs together ≥ 0.9 × one job over the same hosts`,
      measured: `${ratio.toFixed(2)} × (${rate(many)} against ${rate(one)} pages/s)`,
      passed: ratio >= 0.9,
    },
  ];
}

function judgeUrgent(urgent: OvertakeFacts): Verdict[] {
  const verdictOf = (bar: string, name: 'otherHosts' | 'sameHosts' | 'paced'): Verdict => {
    const { ratio, besideMs, aloneMs } = urgent[name];
    return {
      bar,
      measured: `${ratio.toFixed(2)} × (${besideMs.toFixed(0)} against ${aloneMs.toFixed(0)} ms)`,
      passed: ratio <= 2,
    };
  };
  const crawl = urgent.crawl.toLocaleString('en');
  return [
    verdictOf(
      `${urgent.urls} URLs of high priority at 10 requests per second and host beside a crawl of ${crawl} without a limit: within 2 × their time alone`,
      'paced',
    ),
    verdictOf('the same without a limit, which alone takes milliseconds', 'otherHosts'),
    verdictOf('the same without a limit, on hosts that the crawl visits, too', 'sameHosts'),
  ];
}

function judgeFinished(finished: FinishedFacts): Verdict[] {
  return [
    {
      bar: `ready with ${finished.jobs.toLocaleString('en')} finished jobs ≤ 2 s`,
      measured: `${finished.startMs.toFixed(0)} ms (${finished.emptyMs.toFixed(0)} with an empty store)`,
      passed: finished.startMs <= 2_000,
    },
    {
      bar: 'memory then within 50 MB of an empty store',
      measured: `${finished.memoryMb.toFixed(0)} against ${finished.emptyMb.toFixed(0)} MB`,
      passed: finished.memoryMb - finished.emptyMb <= 50,
    },
  ];
}

function sectionOf(data: Data): string {
  const urls = data.share?.many[0]?.urls ?? 0;
  return [
    verdictTable(judge(data)),
    '',
    `- One \`seine serve\` with two threads and SQLite, pages of 24 KiB from nginx with one worker on the same machine; ${HOSTS} loopback addresses are the hosts, without a rate limit. ${urls.toLocaleString('en')} URLs in a round, one job and ${JOBS} jobs in turns; each job has URLs on every host.`,
    '- Shares are counted in the log of nginx, from when the last job began until the first had nine tenths of its pages. The job that began first is at its end before the others, and then has pages left at few hosts only; counted until its last page, it had 0.73 of a share where all others had 0.90 to 1.07.',
    '- The urgent job has `priority: 10` and comes by the API; its time is that of a client that waits for its end. The crawl is stopped for the times alone, and goes on in between. Three seconds pass before each urgent job beside it: jobs that follow each other at once find others that stand still for a tenth of the time at most.',
    '- With a rate limit, hosts set the time of the urgent job, and the bar is about waiting. Without one it is about processors: alone the job computes for some 45 ms, 31 of them in two threads and 12 in the coordinator, and is done when those are over. A crawl without a limit keeps four threads busy that share two cores (two workers, the coordinator, nginx), so that each has half of one: 2 × is what is left if the crawl had nothing under way when the job came. It stands still for up to 250 ms then, and gives back hosts that both visit; what was under way before comes on top.',
    `- Machine: ${data.machine}; a load of ${data.load.toFixed(0)} at the start. ${new Date().toISOString().slice(0, 10)}, ${data.rounds} rounds in turns, at least ${SHORT_ROUNDS} of what takes seconds, medians.`,
    '- Again: `npm run bench -- many`; `--only share`, `urgent` or `finished` is a part of it.',
  ].join('\n');
}

export const scenario: Scenario = {
  name: 'many',
  summary: 'many jobs in one server: shares, an urgent job, a start with many finished jobs',
  run,
};
