import { parseArgs } from 'node:util';
import { runPostgresCrashes } from '../test/support/postgres-crashes.ts';

/** Kills the database under a crawl: `node scripts/crash-postgres.ts --kills 30 --pages 6000`; prints a table row. */

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '30' },
    pages: { type: 'string', default: '6000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const facts = await runPostgresCrashes({
  kills: Number(values.kills),
  pages: Number(values.pages),
  seed: Number(values.seed),
  onKill: (kill) => process.stderr.write(`\rkill ${kill}`),
});
process.stderr.write('\n');
const { kills, pages, lost, forgotten, unreadable, refetched, slowestReturnMs, seed } = facts;
process.stdout.write(
  `${JSON.stringify(facts)}\n| ${kills} | ${pages} | ${lost} | ${forgotten} | ${unreadable} | ${refetched} | ${Math.round(slowestReturnMs)} ms | ${seed} |\n`,
);
const proven = kills === Number(values.kills) && lost === 0 && forgotten === 0 && unreadable === 0;
process.exitCode = proven ? 0 : 1;
