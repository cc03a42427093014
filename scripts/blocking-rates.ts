import { readFileSync, writeFileSync } from 'node:fs';
import { detectBlock } from '../src/core/blocking/block-detection.ts';
import { ratesOf } from '../test/support/html/block-corpus.ts';

/**
 * How well block pages are told from ordinary ones, on the corpus of the tests. `--write` puts the table for the frozen
 * half into docs/blocking.md; `--tuning` lists what goes wrong in the other half.
 */
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
if (process.argv.includes('--tuning')) {
  const { missed, falseAlarms } = ratesOf('tuning', (answer) => detectBlock(answer) !== null);
  console.log({ missed, falseAlarms });
}
if (process.argv.includes('--write')) {
  const path = new URL('../docs/blocking.md', import.meta.url);
  const text = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    text.replace(/(<!-- rates:begin[^>]*-->\n)[\s\S]*?(<!-- rates:end -->)/, `$1${table}\n$2`),
  );
}
