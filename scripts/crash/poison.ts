import { crawlPoison, type Deed } from '../../test/support/runs/poison-run.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run poison --',
  about: `Pages whose code kills its worker must take no other page with them. One supervisor starts the run again whenever its
process dies.`,
  options: {
    pages: { count: 400, does: 'pages of each crawl' },
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const pages = values.pages;
const some = (count: number) =>
  Array.from({ length: count }, (_, index) => Math.floor(((index + 0.5) * pages) / count));
const CASES: { deed: Deed; poison: number[]; taskMs?: number }[] = [
  { deed: 'process.exit(1)', poison: some(1) },
  { deed: 'process.exit(1) behind an await', poison: some(pages / 20) },
  { deed: 'a forgotten await', poison: some(pages / 20) },
  { deed: 'an endless loop', poison: some(1), taskMs: 5_000 },
  { deed: 'a death of the whole process', poison: some(1) },
];

const rows: string[] = [];
let isMet = true;
for (const { deed, poison, taskMs } of CASES) {
  const run = await crawlPoison({ deed, pages, poison, ...(taskMs ? { taskMs } : {}), workers: 2 });
  const dead = run.dead.filter(({ path }) => poison.includes(Number(path.slice(1)))).length;
  const innocent = run.dead.length - dead;
  isMet &&= innocent === 0 && dead === poison.length && run.counters.state === 'done';
  const codes = [...new Set(run.dead.map(({ code }) => `\`${code}\``))].join(', ');
  rows.push(
    `| ${deed.startsWith('process') ? `\`${deed.split(' behind')[0]}\`${deed.includes('behind') ? ' behind an await' : ''}` : deed} | ${poison.length} of ${pages} | ${dead} (${codes}) | ${innocent} | ${pages - poison.length - innocent - Number(run.counters.pending ?? 0)} | ${run.requests} | ${run.starts} | ${(run.ms / 1_000).toFixed(1)} s |`,
  );
  process.stdout.write(`${rows.at(-1)}\n`);
}
const table = [
  '| the code of a poison page does | poison pages | dead of them | innocent pages dead | innocent pages done | requests | starts of the process | time |',
  '|---|--:|--:|--:|--:|--:|--:|--:|',
  ...rows,
].join('\n');
process.stdout.write(`\n${table}\n`);
if (values.write) replaceBetween('docs/reliability.md', 'poison', table);
process.exitCode = isMet ? 0 : 1;
