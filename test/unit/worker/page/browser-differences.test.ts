import { describe, expect, test } from 'vitest';
import { parseAsBrowser } from '../../../../fuzz/parse5-tree.ts';
import { parseHtml } from '../../../../src/worker/page/parse-html.ts';
import { TreeSearch } from '../../../../src/worker/page/tree-search.ts';
import { streamed } from '../../../support/html/html-soup.ts';

/** What docs/extraction.md says is different from a browser, and what is not. */

const search = new TreeSearch();

function textsIn(html: string, css: string) {
  const query = search.compile(css, false);
  const texts = (document: Parameters<typeof search.all>[1]) =>
    search.all(query, document).map((element) => search.textOf(element));
  const ours = texts(parseHtml(html));
  // In one pass over the text it is as in the tree.
  expect(streamed(html, [{ css, all: true }])).toEqual([ours]);
  return { ours, browser: texts(parseAsBrowser(html).document) };
}

describe('elements', () => {
  test('that are not in the source are not there', () => {
    const html = '<table><tr><td>x</td></tr></table>';
    expect(textsIn(html, 'table > tr')).toEqual({ ours: ['x'], browser: [] });
    expect(textsIn(html, 'table tr')).toEqual({ ours: ['x'], browser: ['x'] });
    expect(textsIn('<p>x</p>', 'body p')).toEqual({ ours: [], browser: ['x'] });
  });

  test('that a browser adds to tables are meant by selectors that name them', () => {
    const html =
      '<table class=t><caption>c</caption><thead><tr><td>head</thead><tr class=r><td>a<tr><td><b>b</b></table>' +
      '<table><tbody><tr><td>d</table><p><tr>no</tr></p>';
    for (const css of [
      'tbody > tr',
      'tbody tr',
      'TBODY td',
      '.t tbody tr',
      'table.t tbody > tr.r',
      'table > tbody > tr > td',
      '.t > tbody > *',
      'tbody .r, p',
      'tbody b',
      'tbody > td',
      'thead > tbody > tr',
    ]) {
      const { ours, browser } = textsIn(html, css);
      expect(
        ours.filter((text) => text !== 'no'),
        css,
      ).toEqual(browser.filter((text) => text !== 'no'));
    }
    const nested = '<div><table><tr><td>1<table><tr><td>2</table></table></div>';
    for (const css of ['tbody tbody td', 'div > table > tbody > tr', 'td tbody tr'])
      expect(textsIn(nested, css).ours, css).toEqual(textsIn(nested, css).browser);
  });

  test('in the title of an SVG are there', () => {
    const html = '<svg><title>a <b>b</b></title></svg><p>c</p>';
    for (const css of ['title b', 'title', 'p']) {
      const { ours, browser } = textsIn(html, css);
      expect(ours).toEqual(browser);
    }
  });

  test('after a script in a comment in a script', () => {
    const html = '<script><!-- <script> </script> <p>no</p> --></script><p>yes</p>';
    expect(textsIn(html, 'p')).toEqual({ ours: ['no', 'yes'], browser: ['yes'] });
  });

  test('after plaintext in a select are text', () => {
    expect(textsIn('<select><plaintext><p>x', 'p')).toEqual({ ours: [], browser: [] });
    expect(textsIn('<select><plaintext><b>x', 'plaintext')).toEqual({ ours: ['<b>x'], browser: [] });
  });

  test('that are closed in the wrong order are there once', () => {
    const html = '<b><p>1</b>2</p>';
    expect(textsIn(html, 'b')).toEqual({ ours: ['1'], browser: ['', '1'] });
  });
});
