import { runCrashes } from '../../test/support/crash/crash-harness.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run crash --',
  about: `The long form of the crash proof: kill -9 of a run with all its processes, again and again.`,
  options: {
    kills: { count: 200, does: 'how often' },
    pages: { count: 20_000, does: 'pages of the crawl' },
    seed: { number: Date.now() % 1_000_000, shown: 'a new one each time', does: 'repeats a run' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const facts = await runCrashes({
  kills: values.kills,
  pages: values.pages,
  seed: values.seed,
  onKill: (kill) => process.stderr.write(`\rkill ${kill}`),
});
process.stderr.write('\n');
process.stdout.write(`${JSON.stringify(facts)}\n`);

const proven =
  facts.kills === values.kills &&
  facts.lost === 0 &&
  facts.forgotten === 0 &&
  facts.unreadable === 0 &&
  facts.failedOpens === 0 &&
  facts.refetched <= facts.kills * facts.inFlightMax;
if (values.write) {
  const table = [
    '| kill -9 of the whole tree | pages | lost | forgotten | unreadable pages | failed opens | pages fetched again | bound | slowest resume | seed |',
    '|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
    `| ${facts.kills} | ${facts.pages} | ${facts.lost} | ${facts.forgotten} | ${facts.unreadable} | ${facts.failedOpens} | ${facts.refetched} | ${facts.kills * facts.inFlightMax} | ${Math.round(facts.slowestResumeMs)} ms | ${facts.seed} |`,
  ].join('\n');
  replaceBetween('docs/reliability.md', 'crash', table);
}
process.exitCode = proven ? 0 : 1;
