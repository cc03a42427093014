import { parseArgs } from 'node:util';
import { runCrashes } from '../test/support/crash/crash-harness.ts';
import { replaceBetween } from './replace-between.ts';

/** The long form of the crash proof: `npm run crash -- --kills 200 --pages 20000 --write`. */

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    pages: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    write: { type: 'boolean', default: false },
  },
});
const facts = await runCrashes({
  kills: Number(values.kills),
  pages: Number(values.pages),
  seed: Number(values.seed),
  onKill: (kill) => process.stderr.write(`\rkill ${kill}`),
});
process.stderr.write('\n');
process.stdout.write(`${JSON.stringify(facts)}\n`);

const proven =
  facts.kills === Number(values.kills) &&
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
