import { describe, expect, test } from 'vitest';
import type { FieldInput } from '../../../../src/core/job-schema/job.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { compileFields } from '../../../../src/worker/records/extract.ts';
import { fieldsOf, pageOf, valueOn } from '../../../support/html/html-page.ts';

const OFFERS = `<base href="/shop/"><h1>Chairs</h1>
<ul class=offers data-shop=7>
<li class=offer data-id=1><a href=1.html>Oak  chair</a><b class=price>€ 1.299,00</b><i>old</i><i>oak</i></li>
<li class=ad>Buy now!</li>
<li class=offer data-id=2><a href=/2.html>Ash chair</a><b class=price>sold out</b></li>
<li class=offer></li></ul>
<dl><dt>Wood</dt><dd>Oak</dd><dt>Weight</dt><dd>5 kg</dd></dl>`;

describe('types', () => {
  test.each<[FieldInput, unknown]>([
    [{ css: '.price', type: 'number' }, 1299],
    [
      { css: '.price', type: 'money' },
      { amount: 1299, currency: 'EUR' },
    ],
    [{ css: '.price', type: 'money', all: true }, [{ amount: 1299, currency: 'EUR' }]],
    [{ css: 'h1', type: 'number' }, undefined],
    [{ css: '.offer', attr: 'data-id', type: 'number', all: true }, [1, 2]],
    [
      { css: 'a', attr: 'href', type: 'url', all: true },
      ['https://shop.example/shop/1.html', 'https://shop.example/2.html'],
    ],
    [{ css: 'a', type: 'url' }, undefined],
    [
      { css: '.offer', type: 'html' },
      '<a href="1.html">Oak  chair</a><b class="price">€ 1.299,00</b><i>old</i><i>oak</i>',
    ],
    [{ css: 'i', type: 'html', all: true }, ['old', 'oak']],
  ])('%j is %j', async (field, value) => expect(await valueOn(OFFERS, field)).toEqual(value));

  test('dates and JSON', async () => {
    const html = `<time datetime="2024-05-01T10:00+02:00">1 May</time><p>01/02/2024
      <script id=state type=application/json>{"name": "a  b", "list": [1]}</script><script>var x = {"y": 1};</script>`;
    const extract = await fieldsOf({
      at: { css: 'time', attr: 'datetime', type: 'date' },
      unclear: { css: 'p', type: 'date' },
      british: { css: 'p', type: 'date', dayFirst: true },
      state: { css: '#state', type: 'json' },
      byTree: { css: 'script:first-of-type', type: 'json' },
      broken: { css: 'p', type: 'json' },
      part: { regex: 'var x = (.*);', type: 'json' },
    });
    const state = { name: 'a  b', list: [1] };
    expect(extract(pageOf(html))).toEqual({
      at: '2024-05-01T08:00:00.000Z',
      unclear: null,
      british: '2024-02-01',
      state,
      byTree: state,
      broken: null,
      part: { y: 1 },
    });
  });

  test('only web addresses are URLs, and not too long ones', async () => {
    const hrefs = [
      '/a b',
      '//other.example/x',
      'https://a.example/ü',
      'mailto:a@b.example',
      'javascript:1',
      '',
      ' ',
      'ftp://a.example/',
      'http://[',
      `/${'x'.repeat(LIMITS.urlLengthMax)}`,
    ];
    const html = hrefs.map((href) => `<a href="${href}">x</a>`).join('');
    expect(await valueOn(html, { css: 'a', attr: 'href', type: 'url', all: true })).toEqual([
      'https://shop.example/a%20b',
      'https://other.example/x',
      'https://a.example/%C3%BC',
    ]);
    expect(await valueOn('<p>https://a.example/x</p>', { css: 'p', type: 'url' })).toBe(
      'https://a.example/x',
    );
  });
});

describe('objects', () => {
  const offer = {
    css: '.offer',
    fields: { id: '@data-id', name: 'a', price: { css: '.price', type: 'number' } },
  } as const;

  test('one, or all, each with fields of its own; what has no value at all is left out', async () => {
    expect(await valueOn(OFFERS, offer)).toEqual({ id: '1', name: 'Oak chair', price: 1299 });
    expect(await valueOn(OFFERS, { ...offer, all: true })).toEqual([
      { id: '1', name: 'Oak chair', price: 1299 },
      { id: '2', name: 'Ash chair', price: null },
    ]);
    expect(await valueOn(`${OFFERS}<p>x`, { ...offer, css: '.none' })).toBeUndefined();
    expect(await valueOn(OFFERS, { ...offer, css: '.none', all: true })).toBeUndefined();
  });

  test('objects in objects, the element itself, children, and what follows it', async () => {
    const extract = await fieldsOf({
      list: {
        css: '.offers',
        fields: {
          shop: { attr: 'data-shop', type: 'number' },
          kinds: { css: '> .ad, > .none', all: true },
          offers: { css: ':scope > .offer', all: true, fields: { tags: { css: 'i', all: true }, text: {} } },
          outside: 'h1',
          around: { css: 'body .offers .price, .offers .price' },
        },
      },
      specs: {
        css: 'dt',
        all: true,
        fields: { name: {}, value: '+ dd', number: { css: '+ dd', regex: '\\d+' } },
      },
      group: { fields: { title: 'h1', first: { css: 'a' } } },
    });
    expect(extract(pageOf(OFFERS))).toEqual({
      list: {
        shop: 7,
        kinds: ['Buy now!'],
        offers: [
          { tags: ['old', 'oak'], text: 'Oak chair€ 1.299,00oldoak' },
          { tags: [], text: 'Ash chairsold out' },
        ],
        outside: null,
        around: '€ 1.299,00',
      },
      specs: [
        { name: 'Wood', value: 'Oak', number: null },
        { name: 'Weight', value: '5 kg', number: '5' },
      ],
      group: { title: 'Chairs', first: 'Oak chair' },
    });
  });

  test('HTML is written again as it is meant', async () => {
    const html = `<div id=x><p>a &amp; b &lt;<br>c<img src=a?b&amp;c alt="&quot;x&quot;"><p>d<!-- e -->
<script>if (a < b && c) {}</script><style>a > b{}</style><textarea>&lt;</textarea><svg><style>a &gt; b</style></svg><template><i>t</i></template></div>`;
    expect(await valueOn(html, { css: '#x', type: 'html' })).toBe(
      '<p>a &amp; b &lt;<br>c<img src="a?b&amp;c" alt="&quot;x&quot;"></p><p>d<!-- e -->\n' +
        '<script>if (a < b && c) {}</script><style>a > b{}</style><textarea>&lt;</textarea>' +
        '<svg><style>a &gt; b</style></svg><template><i>t</i></template></p>',
    );
  });
});

describe('meta tags', () => {
  const html = `<meta name="Description" content="a &amp; b"><meta property="og:title" content=T><meta property=og:title content=U>
    <meta name="product:price:amount" content="1.299"><meta itemprop='q"uote' content=x>`;
  test.each<[FieldInput, unknown]>([
    [{ meta: 'description' }, 'a & b'],
    [{ meta: 'og:title' }, 'T'],
    [{ meta: 'og:title', all: true }, ['T', 'U']],
    [
      { meta: 'product:price:amount', type: 'money', currency: 'EUR' },
      { amount: 1.299, currency: 'EUR' },
    ],
    [{ meta: 'q"uote' }, 'x'],
    [{ meta: 'none' }, undefined],
  ])('%j is %j', async (field, value) => expect(await valueOn(html, field)).toEqual(value));
});

describe('patterns', () => {
  test.each<[FieldInput, unknown]>([
    [{ css: 'h1', regex: 'Ch(..)rs' }, 'ai'],
    [{ css: 'h1', regex: '^C.a' }, 'Cha'],
    [{ css: '.offer', attr: 'data-id', regex: '[02-9]', all: true }, ['2']],
    [{ css: '.price', regex: '[\\d.,]+', type: 'number' }, 1299],
    [{ regex: 'data-id=(\\d+)' }, '1'],
    [{ regex: 'data-id=(\\d+)', all: true, type: 'number' }, [1, 2]],
    [{ regex: '(?i)OAK' }, 'Oak'],
    [{ regex: 'none' }, undefined],
  ])('%j is %j', async (field, value) => expect(await valueOn(OFFERS, field)).toEqual(value));
});

describe('mistakes show when the job is loaded', () => {
  test.each<[FieldInput, string]>([
    [
      { css: 'a', regex: '(' },
      "the regex of field 'it' of route 'product' is not a regular expression that runs in linear time: ( (missing",
    ],
    [{ css: 'a', regex: '(?=x)' }, 'linear time'],
    [{ css: 'a', regex: '(a)\\1' }, 'linear time'],
    [{ css: 'a', jsonLd: 'Product.name' }, 'has css and jsonLd, but only one of them is allowed'],
    [{ meta: 'a', attr: 'b' }, 'has meta, so it cannot have attr'],
    [{ attr: 'b' }, 'needs css, jsonLd, meta or regex'],
    [{ type: 'number' }, 'needs css, jsonLd, meta or regex'],
    ['@href', 'needs css, jsonLd, meta or regex'],
    [{ jsonLd: 'Product..name' }, 'no path like Product.offers.price: Product..name'],
    [{ css: 'a', type: 'money', currency: 'ABC' }, 'unknown currency: ABC'],
    [{ css: 'a', currency: 'EUR' }, 'its type is not money'],
    [{ css: 'a', type: 'date', decimal: '.' }, 'its type is not number or money'],
    [{ css: 'a', type: 'number', dayFirst: true }, 'its type is not date'],
    [{ meta: 'a', type: 'html' }, 'has type html, which needs css and no attr'],
    [{ css: 'a', attr: 'b', type: 'markdown' }, 'has type markdown, which needs css and no attr'],
    [{ css: 'a', fields: {} }, 'empty list of fields'],
    [{ all: true, fields: { a: 'b' } }, 'has all, but no css'],
    [{ css: 'a', attr: 'b', fields: { a: 'b' } }, 'has fields, so it cannot have attr'],
    [{ css: 'a', type: 'number', fields: { a: 'b' } }, 'cannot be a number'],
    [
      { css: 'a', fields: { b: { meta: 'x' } } },
      "field 'it.b' of route 'product' is a nested field, so it cannot have meta",
    ],
    [{ css: 'a', fields: { b: { css: 'x[' } } }, "field 'it.b' of route 'product' is not valid CSS: x["],
    [{ css: 'a', fields: { b: { css: 'x', regex: '[' } } }, "field 'it.b'"],
  ])('%j', async (field, message) => {
    await expect(fieldsOf({ it: field })).rejects.toThrow(message);
  });

  test('a currency that is no code, and a field with an impossible name', async () => {
    expect(() => fieldsOf({ it: { css: 'a', type: 'money', currency: 'euro' } })).toThrow(
      'a code such as EUR',
    );
    const fields = Object.fromEntries([['__proto__', 'a']]);
    await expect(compileFields(fields)).rejects.toThrow("field '__proto__' needs another name");
  });
});
