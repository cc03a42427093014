import { type CrawlData, rateOf, rawBound } from './crawl-verdict.ts';

/** The short table in the README: the same figures as docs/benchmarks.md. */
export function readmeSection(data: CrawlData): string {
  const { rounds, site } = data;
  const pages = site.pages.toLocaleString('en-US');
  return `${pages} pages of ${Math.round(site.bytesMean / 1024)} KB with 33 links each, served by nginx on the same two cores; ${
    rounds === 1 ? 'one round' : `medians of ${rounds} rounds in turns`
  }.
Seine keeps its state in SQLite and every page in a WARC file; spider-rs (Rust) keeps nothing.

| | links only | with title and price selected | peak memory |
|---|--:|--:|--:|
| **Seine, durable** | **${rate(data, 'seine-links')}** | **${rate(data, 'seine-select')}** | ${memory(data, 'seine-links', 'seine-select')} |
| spider-rs | ${rate(data, 'spider-links')} | ${rate(data, 'spider-select')}, selected in JavaScript | ${memory(data, 'spider-links', 'spider-select')} |
| Crawlee CheerioCrawler, on disk | ${rate(data, 'crawlee-links')} | ${rate(data, 'crawlee-select')} | ${memory(data, 'crawlee-links', 'crawlee-select')} |
| for scale: undici and a link scan, nothing kept | ${perSecond(rawBound(data.rows))} | | ${memory(data, fastestRaw(data))} |`;
}

function perSecond(pages: number | undefined): string {
  return pages === undefined ? 'not measured' : `${Math.round(pages).toLocaleString('en-US')} pages/s`;
}

function rate({ rows }: CrawlData, id: string): string {
  return perSecond(rateOf(rows, id));
}

function fastestRaw({ rows }: CrawlData): string {
  return (rateOf(rows, 'raw-2') ?? 0) > (rateOf(rows, 'raw-1') ?? 0) ? 'raw-2' : 'raw-1';
}

/** The most that it took in either mode. */
function memory({ rows }: CrawlData, ...ids: string[]): string {
  const peaks = rows.flatMap(({ id, measured }) => (measured && ids.includes(id) ? [measured.peakMb] : []));
  return peaks.length === 0 ? '' : `${Math.round(Math.max(...peaks))} MB`;
}
