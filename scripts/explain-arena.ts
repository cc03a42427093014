import { judge, SITUATIONS } from '../test/sim/arena.ts';
import { readOptions } from './read-options.ts';

const { values } = readOptions({
  start: 'npm run explain-arena --',
  about: `Crawls on virtual time that are slow for a known reason: does the explainer name it, and does a change give what it
predicts?`,
  options: {
    seconds: { number: 120, does: 'virtual time of each crawl' },
    only: { text: '', does: 'situations with this in their names', shown: 'all' },
  },
});
const rows = [
  '| situation | limited by | named | change | pages/s | predicted | then | off by |',
  '|---|---|---|---|--:|--:|--:|--:|',
];
let failed = 0;
for (const situation of SITUATIONS) {
  if (!situation.name.includes(values.only)) continue;
  const startedAt = process.cpuUsage();
  const { explanation, before, predicted, after } = await judge(situation, values.seconds * 1_000);
  const { user, system } = process.cpuUsage(startedAt);
  const off = Math.abs(predicted / after - 1);
  const isRight = explanation.limiting === situation.cause && off <= 0.15;
  if (!isRight) failed++;
  rows.push(
    `| ${situation.name} | ${situation.cause} | ${explanation.limiting} | \`${situation.change}\` | ${before.toFixed(2)} | ${predicted.toFixed(2)} | ${after.toFixed(2)} | ${(off * 100).toFixed(1)} % |`,
  );
  const cpu = ((user + system) / 1e6).toFixed(1);
  process.stderr.write(
    `${isRight ? 'ok   ' : 'WRONG'} ${situation.name} (${cpu} s): ${explanation.sentence}\n`,
  );
  if (!isRight) process.stderr.write(`      ${JSON.stringify(explanation.shares)}\n`);
}
process.stdout.write(`${rows.join('\n')}\n`);
process.exitCode = failed === 0 ? 0 : 1;
