import { runServerCrashes } from '../../test/support/crash/server-crashes.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run crash-many --',
  about: `kill -9 of \`seine serve\` with many jobs. Needs \`npm run build\`.`,
  options: {
    kills: { count: 100, does: 'how often' },
    jobs: { count: 20, does: 'jobs at once' },
    urls: { count: 1_000, does: 'URLs of each job' },
    seed: { number: Date.now() % 1_000_000, shown: 'a new one each time', does: 'repeats a run' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const facts = await runServerCrashes({
  kills: values.kills,
  jobs: values.jobs,
  urls: values.urls,
  seed: values.seed,
  onKill: (kill) => process.stderr.write(`\rkill ${kill}`),
});
process.stderr.write('\n');
process.stdout.write(`${JSON.stringify(facts)}\n`);
const { kills, jobs, urls, lost, doubled, unreadable, refetched, slowestResumeMs, seed } = facts;
if (values.write)
  replaceBetween(
    'docs/reliability.md',
    'crash-many',
    [
      '| kill -9 of the server | jobs | URLs | lost | doubled | unreadable pages | pages fetched again | slowest resume | seed |',
      '|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
      `| ${kills} | ${jobs} | ${urls} | ${lost} | ${doubled} | ${unreadable} | ${refetched} | ${Math.round(slowestResumeMs)} ms | ${seed} |`,
    ].join('\n'),
  );
process.exitCode = kills === values.kills && lost + doubled + unreadable === 0 ? 0 : 1;
