import { selectAll, selectOne } from 'css-select';
import type { Document, Element } from 'domhandler';
import fc from 'fast-check';
import { parseDocument } from 'htmlparser2';
import { describe, expect, test } from 'vitest';
import type { FieldInput } from '../../../../src/core/job-schema/job.ts';
import { textOfElement } from '../../../../src/worker/page/page.ts';
import { parseHtml } from '../../../../src/worker/page/parse-html.ts';
import { parseSelector } from '../../../../src/worker/page/parse-selector.ts';
import { innerHtml } from '../../../../src/worker/page/serialize-html.ts';
import { TreeSearch, VALUES_PER_FIELD_MAX } from '../../../../src/worker/page/tree-search.ts';
import { parseStreamSelector } from '../../../../src/worker/selectors/compile.ts';
import { compileStreamSelectors } from '../../../../src/worker/selectors/stream-select.ts';
import { fieldsOf, pageOf } from '../../../support/html/html-page.ts';
import { type Asked, asking, soup } from '../../../support/html/html-soup.ts';

/** The same asked of css-select itself, in the plainest way. */

type Root = Document | Element;

function read(element: Element, attr: string | undefined): string | null {
  return attr === undefined ? textOfElement(element) : (element.attribs[attr] ?? null);
}

/** Selectors may begin outside of the element, as with querySelector in a browser. */
function valueIn(root: Root, { css, attr, all }: Asked, context: Document): unknown {
  if (all) {
    return selectAll<Root, Element>(parseSelector(css), root, { context })
      .map((element) => read(element, attr))
      .filter((value) => value !== null);
  }
  const element = selectOne<Root, Element>(parseSelector(css), root, { context });
  return element ? read(element, attr) : null;
}

const isBlank = (value: unknown) =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

function objectIn(
  root: Root,
  fields: Record<string, Asked>,
  document: Document,
): Record<string, unknown> | null {
  const object = Object.fromEntries(
    Object.entries(fields).map(([name, asked]) => [name, valueIn(root, asked, document)]),
  );
  return Object.values(object).every(isBlank) ? null : object;
}

const withoutNulls = (list: unknown[]) => list.filter((value) => value !== null);

describe('any soup, any selectors', () => {
  // Random selectors seldom match inside of what others matched, so most are of a kind that does.
  const likely: fc.Arbitrary<Asked> = fc.record(
    {
      css: fc.constantFrom(
        '*',
        'div',
        'p',
        'b',
        '.a',
        '[id]',
        'div p',
        'div > *',
        'p b',
        '.a b',
        '* *',
        'p, b',
      ),
      attr: fc.constantFrom('id', 'class', 'a'),
      all: fc.boolean(),
    },
    { requiredKeys: ['css'] },
  );
  const any = fc.oneof({ weight: 4, arbitrary: likely }, asking);
  const fields = fc.dictionary(fc.constantFrom('x', 'y', 'z'), any, { minKeys: 1, maxKeys: 3 });

  test('plain fields, on the text or in a tree', async () => {
    await fc.assert(
      fc.asyncProperty(soup, fields, fc.boolean(), async (html, asked, byTree) => {
        const written = Object.entries(asked).map(([name, { css, ...more }]): [string, FieldInput] => [
          name,
          { ...more, css: byTree ? `:is(${css})` : css },
        ]);
        const extract = await fieldsOf(Object.fromEntries(written));
        const document = parseHtml(html);
        expect(extract(pageOf(html))).toEqual(objectIn(document, asked, document));
      }),
      { numRuns: 1_000 },
    );
  });

  test('objects and lists of objects', async () => {
    let found = 0;
    await fc.assert(
      fc.asyncProperty(soup, any, fields, fc.boolean(), async (inner, { css }, asked, all) => {
        const html = `<div class=a id=b><p><b a=a>1</b>${inner}</p></div><div class=a>2<b>3</b>${inner}`;
        const extract = await fieldsOf({ it: { css, all, fields: asked } });
        const document = parseHtml(html);
        const elements = selectAll<Root, Element>(parseSelector(css), document);
        const objects = elements.map((element) => objectIn(element, asked, document));
        const expected = all ? withoutNulls(objects) : (objects[0] ?? null);
        expect(extract(pageOf(html))?.it ?? (all ? [] : null)).toEqual(expected);
        if (objects.some((object) => object !== null)) found++;
      }),
      { numRuns: 1_000 },
    );
    expect(found).toBeGreaterThan(100);
  });

  test('whether something is there, and text as it stands', () => {
    const tree = new TreeSearch();
    fc.assert(
      fc.property(soup, any, (html, { css }) => {
        const selector = parseStreamSelector(css)!;
        const plain = { selector, attr: undefined };
        const scan = compileStreamSelectors([
          { ...plain, all: false, presence: true },
          { ...plain, all: true, raw: true },
        ]);
        const elements = selectAll<Root, Element>(parseSelector(css), parseDocument(html));
        tree.begin();
        expect(scan(html)).toEqual([
          elements.length > 0 ? '' : null,
          elements.map((element) => tree.rawTextOf(element)),
        ]);
      }),
      { numRuns: 2_000 },
    );
  });

  test('HTML that was written out reads as the same text', () => {
    fc.assert(
      fc.property(soup, (html) => {
        const [body] = selectAll<Root, Element>('div', parseHtml(html));
        // What follows a plaintext tag cannot be written so that it ends.
        if (!body || /<plaintext/i.test(html)) return;
        const again = parseHtml(`<div>${innerHtml(body, () => {})}</div>`);
        const once = innerHtml(selectOne<Root, Element>('div', again)!, () => {});
        const twice = parseHtml(`<div>${once}</div>`);
        expect(innerHtml(selectOne<Root, Element>('div', twice)!, () => {})).toBe(once);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('hostile pages end with an error, and soon', () => {
  const wide = (count: number) => `<div>${'<p><b>x</b></p>'.repeat(count)}</div>`;

  test.each<[string, string, FieldInput]>([
    ['a great many siblings', wide(40_000), { css: 'p:nth-last-child(7n) + p', all: true }],
    ['too many values', wide(VALUES_PER_FIELD_MAX + 1), { css: 'p', all: true }],
    ['too many values of a tree', wide(VALUES_PER_FIELD_MAX + 1), { css: ':is(p)', all: true }],
    ['too many objects', wide(VALUES_PER_FIELD_MAX + 1), { css: 'p', all: true, fields: { b: 'b' } }],
    [
      'elements in each other, each with the same text',
      `${'<b>'.repeat(500)}${'x'.repeat(1_000_000)}`,
      { css: ':is(b)', all: true },
    ],
    [
      'the same as HTML',
      `${'<b>'.repeat(500)}${'x'.repeat(1_000_000)}`,
      { css: 'b', type: 'html', all: true },
    ],
    [
      'objects that each search the whole page',
      `<div>${'<p></p>'.repeat(9_000)}${'<i></i>'.repeat(20_000)}</div>`,
      { css: 'p', all: true, fields: { i: { css: '~ i', all: true } } },
    ],
  ])('%s', async (_, html, field) => {
    const extract = await fieldsOf({ it: field });
    const page = pageOf(html);
    // By counts, whatever time they take.
    expect(() => extract(page)).toThrow(/more than|exceed/);
    expect(extract(pageOf('<div><p><b>x</b></p><p><b>y</b></p></div>'))).toBeDefined();
  });

  test('as deep as it is long', async () => {
    const html = `${'<div>'.repeat(200_000)}x`;
    const extract = await fieldsOf({
      html: { css: 'div', type: 'html' },
      text: ':is(div)',
      some: 'div:has(div)',
    });
    expect(extract(pageOf(html))).toMatchObject({ text: 'x', some: 'x' });
  });
});
