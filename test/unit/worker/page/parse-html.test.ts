import type { Document } from 'domhandler';
import fc from 'fast-check';
import { DomUtils, parseDocument } from 'htmlparser2';
import { expect, test } from 'vitest';
import { textOfElement } from '../../../../src/worker/page/page.ts';
import { NESTING_MAX, NODES_MAX, parseHtml } from '../../../../src/worker/page/parse-html.ts';
import { soup } from '../../../support/html/html-soup.ts';

const render = (tree: Document) => DomUtils.getOuterHTML(tree.children);

function depthOf(html: string): number {
  let depth = 0;
  let level = parseHtml(html).children;
  while (level.length > 0) {
    depth++;
    level = level.flatMap((node) => ('children' in node ? node.children : []));
  }
  return depth;
}

test('any soup gives the tree that htmlparser2 gives', () => {
  fc.assert(
    fc.property(soup, (html) => {
      expect(render(parseHtml(html))).toBe(render(parseDocument(html)));
    }),
    { numRuns: 1_000 },
  );
});

test('an end tag of br, a form in a form and an end tag without a start are as ever', () => {
  for (const html of [
    'a</br>b<div>c',
    '<form><form><p>x</form></form>y',
    'a</p>b',
    '<svg><g/><g></svg>x<p/>y',
  ])
    expect(render(parseHtml(html))).toBe(render(parseDocument(html)));
});

test.each([
  ['elements of one kind', '<div>'],
  ['forms and paragraphs', '<form><p><div>'],
  ['pictures in pictures', '<svg><desc><svg><g>'],
  ['tables', '<table><tr><td>'],
])('%s nested without end are cut at the deepest level, and nothing is lost', (_, piece) => {
  const started = process.threadCpuUsage().user;
  const html = `${piece.repeat(90_000)}<p>the <b>last</b> words`;
  expect(depthOf(html)).toBeLessThanOrEqual(NESTING_MAX + 2);
  const [top] = parseHtml(html).children;
  expect(textOfElement(top as Parameters<typeof textOfElement>[0])).toContain('the last words');
  expect(process.threadCpuUsage().user - started).toBeLessThan(10_000_000);
});

test('what follows a deep part has its place again', () => {
  const deep = `${'<div>'.repeat(NESTING_MAX)}x${'</div>'.repeat(NESTING_MAX)}`;
  const html = `<main>${deep}<p>after</p></main><footer>end</footer>`;
  expect(parseHtml(html).children.map((node) => 'name' in node && node.name)).toEqual(['main', 'footer']);
});

test('a page of nothing but tags is looked at until the tree is large enough', () => {
  const { children } = parseHtml('<p>x'.repeat(4_000_000));
  expect(children.length).toBeGreaterThan(NODES_MAX / 2 - 2);
  expect(children.length).toBeLessThan(NODES_MAX / 2 + 2);
});
