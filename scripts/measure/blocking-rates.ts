import { detectBlock } from '../../src/core/blocking/block-detection.ts';
import { ratesOf } from '../../test/support/html/block-corpus.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npx node scripts/measure/blocking-rates.ts',
  about: `How well block pages are told from ordinary ones, on the corpus of the tests.`,
  options: {
    tuning: { flag: true, does: 'list what goes wrong in the half for tuning' },
    write: { flag: true, does: 'put the result into docs/blocking.md' },
  },
});

const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
const rowOf = (half: 'tuning' | 'frozen') => {
  const { blocks, ordinary, precision, recall, missed, falseAlarms } = ratesOf(
    half,
    (answer) => detectBlock(answer) !== null,
  );
  return `| ${half} | ${blocks} | ${ordinary} | ${percent(precision)} | ${percent(recall)} | ${falseAlarms.length} | ${missed.length} |`;
};
const table = [
  '| half | block pages | ordinary pages | precision | recall | false alarms | missed |',
  '|---|--:|--:|--:|--:|--:|--:|',
  rowOf('frozen'),
  rowOf('tuning'),
].join('\n');
console.log(table);
if (values.tuning) {
  const { missed, falseAlarms } = ratesOf('tuning', (answer) => detectBlock(answer) !== null);
  console.log({ missed, falseAlarms });
}
if (values.write) replaceBetween('docs/blocking.md', 'rates', table);
