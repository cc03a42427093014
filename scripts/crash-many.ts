import { parseArgs } from 'node:util';
import { runServerCrashes } from '../test/support/crash/server-crashes.ts';
import { replaceBetween } from './replace-between.ts';

/** `npm run crash-many -- --kills 100 --write`: kill -9 of `seine serve` with many jobs. Needs `npm run build`. */

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    jobs: { type: 'string', default: '20' },
    urls: { type: 'string', default: '1000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    write: { type: 'boolean', default: false },
  },
});
const facts = await runServerCrashes({
  kills: Number(values.kills),
  jobs: Number(values.jobs),
  urls: Number(values.urls),
  seed: Number(values.seed),
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
process.exitCode = kills === Number(values.kills) && lost + doubled + unreadable === 0 ? 0 : 1;
