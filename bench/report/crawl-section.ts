import type { Verdict } from '../scenario.ts';
import { costSection } from './cost-section.ts';
import { COLUMNS, rowCells, rowsByMode } from './crawl-table.ts';
import type { CrawlData } from './crawl-verdict.ts';
import { noiseText, verdictTable } from './tables.ts';

function tables(data: CrawlData): string {
  let text = '';
  for (const { title, rows } of rowsByMode(data)) {
    text += `### ${title}\n\n| ${COLUMNS.join(' | ')} |\n|${COLUMNS.map((_, at) => (at < 2 ? '---' : '--:')).join('|')}|\n`;
    for (const row of rows) {
      const cells = rowCells(row, data);
      while (cells.length < COLUMNS.length) cells.push('');
      text += `| ${cells.join(' | ')} |\n`;
    }
    text += '\n';
  }
  return text;
}

export function crawlSection(data: CrawlData, verdicts: Verdict[]): string {
  const versions = Object.entries(data.versions).map(([name, version]) => `${name} ${version}`);
  const { site } = data;
  const cpuMicros = data.rows.find(({ id }) => id === 'seine-links')?.measured?.cpuMicros;
  return `![Pages per second of each crawler](benchmarks.svg)

${tables(data)}${verdictTable(verdicts)}

- Site: ${site.pages.toLocaleString('en-US')} pages of ${(site.bytesMean / 1024).toFixed(1)} KiB on average with 33 links each, \`${site.markup}\` markup, served from memory by ${data.versions.origin} on the same machine.
- Machine: ${data.machine}.
- Versions: ${versions.join(' · ')}.
- ${data.date.slice(0, 10)}, ${data.rounds} round${data.rounds === 1 ? '' : 's'} in turns after one check round, medians. ${noiseText(data.rows)}
- \`pages/s\` is taken from the start of the crawl to its end, \`pages/s with start\` from the start of the process to its exit. CPU is that of the whole process, start included. Memory is the highest resident sum of the process tree in any round.
- In the check round the origin logs each request, so that no crawler is credited with a page it did not fetch.
- spider-rs has no selectors. The bars compare with its best figure, links only, in both modes; the row below hands each page to JavaScript.
- Crawlee gets fewer pages, see the table, so that a run stays short. Its CPU per page falls as it warms up, so a longer run may favour it: \`--crawlee-pages\`.
- Again: \`npm run bench -- crawl\`, raw figures in \`bench/results/latest.json\`. \`npm run bench -- history crawl.seine\` shows how they moved from run to run.${
    cpuMicros === undefined ? '' : `\n\n${costSection(cpuMicros)}`
  }`;
}

/** What a crawl takes once it runs: starts and compiling are a small part of it. */
export function longCrawlSection(data: CrawlData, verdicts: Verdict[]): string {
  const { site } = data;
  return `${tables(data).replaceAll('### ', '#### ')}${verdictTable(verdicts)}

- ${site.pages.toLocaleString('en-US')} pages of ${(site.bytesMean / 1024).toFixed(1)} KiB; all else as above. Machine: ${data.machine}.
- ${data.date.slice(0, 10)}, ${data.rounds} round${data.rounds === 1 ? '' : 's'} in turns after one check round, medians. ${noiseText(data.rows)}
- Again: \`npm run bench -- crawl-long\`.`;
}
