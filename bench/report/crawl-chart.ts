/** The bar chart of docs/benchmarks.svg: readable on light and dark pages, no fonts or scripts of its own. */
import { escapeHtml } from '../../src/core/text/escape-html.ts';
import { rowsByMode } from './crawl-table.ts';
import { type CrawlData, type Row, rateOf } from './crawl-verdict.ts';
import { noiseText } from './tables.ts';

const WIDTH = 900;
const LABEL_WIDTH = 350;
const BAR_HEIGHT = 22;
const BAR_STEP = 32;
const BAR_WIDTH_MAX = WIDTH - LABEL_WIDTH - 190;

/** Labels are Markdown elsewhere. */
const labelText = (text: string): string => escapeHtml(text.replaceAll('`', ''));

function kindOf(row: Row): string {
  return row.id.startsWith('seine') ? 'own' : row.id.startsWith('raw') ? 'bound' : 'peer';
}

function bar(row: Row, y: number, scale: number, spider: number | undefined): string {
  const rate = row.measured?.pagesPerSecond ?? 0;
  const width = Math.max(1.5, rate * scale).toFixed(1);
  const ratio =
    spider === undefined ? '' : ` · ${(rate / spider).toFixed(rate / spider < 0.1 ? 3 : 2)} × spider-rs`;
  const middle = y + BAR_HEIGHT / 2 + 4.5;
  return (
    `<text x="${LABEL_WIDTH - 10}" y="${middle}" text-anchor="end">${labelText(row.label.replace(/: .*?(\d)/, ', $1'))}</text>` +
    `<rect class="${kindOf(row)}" x="${LABEL_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="3"/>` +
    `<text class="figure" x="${LABEL_WIDTH + Number(width) + 8}" y="${middle}">` +
    `${Math.round(rate).toLocaleString('en-US')}<tspan class="dim">${ratio}</tspan></text>\n`
  );
}

export function crawlChart(data: CrawlData): string {
  const measured = data.rows.filter((row) => row.measured !== undefined);
  const fastest = Math.max(1, ...measured.map((row) => row.measured!.pagesPerSecond));
  const spider = rateOf(data.rows, 'spider-links');
  let y = 56;
  let body = '';
  for (const { title, rows } of rowsByMode({ ...data, rows: measured })) {
    body += `<text class="group" x="16" y="${y + 14}">${title}</text>\n`;
    y += 30;
    for (const row of rows) {
      body += bar(row, y, BAR_WIDTH_MAX / fastest, spider);
      y += BAR_STEP;
    }
    y += 14;
  }
  const note = `${data.site.pages.toLocaleString('en-US')} pages of 24 KB, 33 links each · ${data.machine} · ${data.date.slice(0, 10)}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 34}" width="${WIDTH}" height="${y + 34}" role="img" aria-label="Pages per second of each crawler">
<style>
text{font:13px system-ui,sans-serif;fill:#24292f}.head{font-size:17px;font-weight:600}.group,.figure{font-weight:600}
.dim,.note{fill:#6e7781;font-weight:400}.note{font-size:11px}.own{fill:#0a7ea4}.peer{fill:#9aa4ae}.bound{fill:#d5dbe1}.back{fill:#fff}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.dim,.note{fill:#8d96a0}.own{fill:#3fb6dc}.peer{fill:#6e7781}.bound{fill:#3d444d}.back{fill:#0d1117}}
</style>
<rect class="back" width="100%" height="100%" rx="8"/>
<text class="head" x="16" y="34">Pages per second, higher is better</text>
${body}<text class="note" x="16" y="${y + 6}">${labelText(note)}</text>
<text class="note" x="16" y="${y + 22}">${labelText(noiseText(data.rows))}</text>
</svg>
`;
}
