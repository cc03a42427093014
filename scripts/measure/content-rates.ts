import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { mainContent } from '../../src/worker/markdown/markdown.ts';
import { Page } from '../../src/worker/page/page.ts';
import {
  type ContentPage,
  contentPages,
  type Half,
  meanOf,
  type Rates,
  rateText,
  textOfMarkdown,
} from '../../test/support/html/content-corpus.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const { values } = readOptions({
  start: 'npm run content --',
  about: `How well the main content of a page is found, on the corpus of the tests, beside @mozilla/readability with turndown.`,
  options: {
    pages: { flag: true, does: 'list each page of the half for tuning' },
    write: { flag: true, does: 'put the table for the frozen half into docs/markdown.md' },
    benchmark: {
      ...{ text: null, shown: 'none' },
      does: 'instead: a clone of scrapinghub/article-extraction-benchmark, for whose evaluate.py both results are written',
    },
  },
});

interface Extracted {
  title: string | null;
  markdown: string;
}
type Extract = (page: Pick<ContentPage, 'html'>) => Extracted;

const URL_OF_PAGE = 'https://site.example/a/b/page.html';
const ROUNDS = 5;

function seine({ html }: Pick<ContentPage, 'html'>): Extracted {
  return mainContent(
    new Page({
      url: URL_OF_PAGE,
      status: 200,
      contentType: 'text/html',
      contentTypeHeader: 'text/html; charset=utf-8',
      headers: [],
      body: Buffer.from(html),
      route: null,
      meta: null,
    }),
  );
}

/** Loaded without their types, which would put the globals of a browser into every file of the project. */
interface Libraries {
  Readability: new (document: object) => { parse(): { title: string; content: string } | null };
  JSDOM: new (html: string, options: object) => { window: { document: object; close(): void } };
  TurndownService: new () => { turndown(html: string): string };
}
const require = createRequire(import.meta.url);
const { Readability, JSDOM, TurndownService }: Libraries = {
  ...require('@mozilla/readability'),
  ...require('jsdom'),
  TurndownService: require('turndown'),
};
const turndown = new TurndownService();

function readability({ html }: Pick<ContentPage, 'html'>): Extracted {
  const { window } = new JSDOM(html, { url: URL_OF_PAGE });
  const article = new Readability(window.document).parse();
  const markdown = turndown.turndown(article?.content ?? '');
  window.close();
  return { title: article?.title ?? null, markdown };
}

interface Result {
  page: ContentPage;
  rates: Rates;
  isTitleRight: boolean;
}

function run(extract: Extract, pages: readonly ContentPage[]): { results: Result[]; ms: number } {
  const results = pages.map((page) => {
    const { title, markdown } = extract(page);
    return { page, rates: rateText(page, textOfMarkdown(markdown)), isTitleRight: title === page.title };
  });
  const times = Array.from({ length: ROUNDS }, () => {
    const { user, system } = process.cpuUsage();
    for (const page of pages) extract(page);
    const after = process.cpuUsage();
    return (after.user - user + after.system - system) / 1_000 / pages.length;
  });
  return { results, ms: times.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]! };
}

const three = (share: number) => share.toFixed(3);

function tableOf(half: Half): string {
  const pages = contentPages(half);
  const ours = run(seine, pages);
  const theirs = run(readability, pages);
  const row = (name: string, { results, ms }: { results: Result[]; ms: number }) => {
    const { precision, recall, f1 } = meanOf(results.map(({ rates }) => rates));
    const titles = results.filter(({ isTitleRight }) => isTitleRight).length;
    return `| ${name} | ${three(f1)} | ${three(precision)} | ${three(recall)} | ${titles} of ${pages.length} | ${(ms / ours.ms).toFixed(1)} |`;
  };
  const kinds = [...new Set(pages.map(({ kind }) => kind))];
  const f1Of = ({ results }: { results: Result[] }, kind: string) =>
    three(meanOf(results.filter(({ page }) => page.kind === kind).map(({ rates }) => rates)).f1);
  return [
    `| ${pages.length} pages, ${half} | F1 | precision | recall | titles | time |`,
    '|---|--:|--:|--:|--:|--:|',
    row('Seine', ours),
    row('@mozilla/readability, turndown, jsdom', theirs),
    '',
    '| F1 by kind of page | pages | Seine | readability |',
    '|---|--:|--:|--:|',
    ...kinds.map(
      (kind) =>
        `| ${kind} | ${pages.filter((page) => page.kind === kind).length} | ${f1Of(ours, kind)} | ${f1Of(theirs, kind)} |`,
    ),
  ].join('\n');
}

/** What its own script compares: the text of each article, without its title. */
function writeForBenchmark(folder: string): void {
  if (!existsSync(join(folder, 'ground-truth.json'))) {
    process.stderr.write(`${folder} has no ground-truth.json: clone the benchmark there\n`);
    process.exit(2);
  }
  const ids = Object.keys(JSON.parse(readFileSync(join(folder, 'ground-truth.json'), 'utf8')) as object);
  mkdirSync(join(folder, 'output'), { recursive: true });
  for (const [name, extract] of Object.entries({ seine, seine_beside_readability: readability })) {
    const { user, system } = process.cpuUsage();
    const bodies = ids.map((id) => {
      const html = gunzipSync(readFileSync(join(folder, 'html', `${id}.html.gz`))).toString();
      const { title, markdown } = extract({ html });
      const text = textOfMarkdown(markdown).trim();
      return [id, { articleBody: title && text.startsWith(title) ? text.slice(title.length) : text }];
    });
    const after = process.cpuUsage();
    writeFileSync(join(folder, 'output', `${name}.json`), JSON.stringify(Object.fromEntries(bodies)));
    const seconds = (after.user - user + after.system - system) / 1e6;
    console.log(`output/${name}.json: ${ids.length} pages, ${seconds.toFixed(1)} s of CPU`);
  }
  console.log('compare them: python3 evaluate.py, in that folder');
}

if (values.benchmark !== null) writeForBenchmark(values.benchmark);
else if (values.pages) {
  for (const page of contentPages('tuning')) {
    const show = ({ title, markdown }: Extracted) => {
      const { precision, recall, f1 } = rateText(page, textOfMarkdown(markdown));
      return `${three(f1)} (${three(precision)} ${three(recall)})${title === page.title ? '' : ` title: ${title}`}`;
    };
    console.log(`${page.name.padEnd(28)} ${show(seine(page))} · ${show(readability(page))}`);
  }
} else {
  const table = tableOf('frozen');
  console.log(`${tableOf('tuning')}\n\n${table}`);
  if (values.write) replaceBetween('docs/markdown.md', 'rates', table);
}
