import { parseDocument } from 'htmlparser2';
import { describe, expect, test } from 'vitest';
import { MARKDOWN_CHARS_MAX } from '../../../../src/worker/markdown/blocks.ts';
import { mainContent, toMarkdown } from '../../../../src/worker/markdown/markdown.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { parseHtml } from '../../../../src/worker/page/parse-html.ts';

/** Of this thread alone: others may use the machine too. */
const cpuMs = () => process.threadCpuUsage().user / 1_000;
const BASE = 'https://site.example/docs/page.html?a=1';
const markdown = (html: string) => toMarkdown(parseDocument(html), BASE);

describe('a hostile page', () => {
  test.each([
    ['divisions', '<div>'],
    ['quotes', '<blockquote>'],
    ['lists', '<ul><li>'],
    ['tables', '<table><tr><td>'],
    ['emphasis', '<b><i>'],
    ['links', '<a href=/x><span>'],
    ['definitions', '<dl><dd>'],
  ])('of %s inside each other is written, deeper than the call stack', (_, piece) => {
    const html = `${piece.repeat(12_000)}<p>the end</p>`;
    const written = markdown(html);
    expect(written).toContain('the end');
    expect(written.length).toBeLessThan(1_000);
  });

  test.each([
    ['breaks deep in lists', `${'<ul><li>'.repeat(100)}${'a<br>'.repeat(60_000)}`],
    ['paragraphs deep in quotes', `${'<blockquote>'.repeat(100)}${'<p>a'.repeat(60_000)}`],
    ['one long paragraph', '<b>a</b> *'.repeat(60_000)],
    ['bold beside bold', '<b>a</b>'.repeat(60_000)],
    ['a long table', `<table>${'<tr><th>a<td>b'.repeat(40_000)}`],
    ['a wide table', `<table><tr>${'<td colspan=1000>a'.repeat(40_000)}<tr><td>`],
    ['cells without end', `<table>${'<tr><td rowspan=60000>a<td>b'.repeat(40_000)}`],
    ['backticks', `<code>${'` `` '.repeat(400_000)}</code><pre>${'`'.repeat(1_000_000)}</pre>`],
    ['brackets', '['.repeat(1_000_000) + ']('.repeat(500_000)],
    ['ampersands', '&amp;'.repeat(500_000)],
    ['white space', `a${' '.repeat(2_000_000)}b<pre>${' \n'.repeat(1_000_000)}</pre>`],
    ['dashes', '- '.repeat(1_000_000)],
  ])('of %s takes no time and no room', (_, html) => {
    const document = parseHtml(html);
    const started = cpuMs();
    expect(toMarkdown(document, BASE).length).toBeLessThanOrEqual(MARKDOWN_CHARS_MAX);
    expect(cpuMs() - started).toBeLessThan(10_000);
  });

  test.each([
    ['boxes with names', '<div class="ad sidebar">x</div>'],
    ['footers', '<p>a<footer>b</footer>'],
    ['headings', '<h1>a</h1>'],
    ['boxes inside each other', '<div class="comments"><p>a</p>'],
    ['forms and lists of links', '<form>a</form><ul><li><a href=x>b</a></ul>'],
    ['class names', `<p class="${'a-'.repeat(5_000)}" style="${'display '.repeat(5_000)}">b`],
    ['titles', `<title>${'a | '.repeat(20)}</title><meta property="og:title" content="${' | '.repeat(20)}">`],
  ])('of %s does not hold up the search for its content', (_, piece) => {
    const body = Buffer.from(piece.repeat(Math.ceil(500_000 / piece.length)));
    const contentType = 'text/html';
    const page = new Page({
      url: BASE,
      status: 200,
      contentType,
      contentTypeHeader: contentType,
      headers: [],
      body,
      route: null,
      meta: null,
    });
    expect(page.document.children.length).toBeGreaterThan(0);
    const started = cpuMs();
    expect(mainContent(page).markdown.length).toBeLessThanOrEqual(MARKDOWN_CHARS_MAX);
    expect(cpuMs() - started).toBeLessThan(10_000);
  });
});
