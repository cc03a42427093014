import { describe, expect, test } from 'vitest';
import { candidatesFor, candidatesNamed } from '../../../../src/core/selector-search/candidates.ts';
import { isSameValue } from '../../../../src/core/selector-search/find-values.ts';
import { rankTried, type Tried } from '../../../../src/core/selector-search/rank.ts';
import { factsOf } from '../../../../src/reparse/page-facts.ts';
import { Page } from '../../../../src/worker/page/page.ts';

const HTML = `<html><head><title>Blue mug - Shop</title><meta property="og:title" content="Blue mug">
<script type="application/ld+json">{"@graph":[{"@type":"https://schema.org/Product","name":"Blue mug","offers":{"price":"12.50"}}]}</script>
</head><body><ul><li class="card"><h3>Blue mug</h3></li></ul>
<main id="product-48213"><h1 class="css-1x2y3z"> Blue\n mug </h1>
<p class="price">12,50 €</p><p class="price old">15,00 €</p>
<dl><dt>Weight</dt><dd>300 g</dd><dt>Colour</dt><dd>blue</dd></dl>
<time datetime="2026-02-01">1 February 2026</time><img itemprop="image" src="/img/1.jpg">
<p>the same <b>blue</b></p></main></body></html>`;

function facts(html = HTML) {
  return factsOf(
    new Page({
      ...{ url: 'https://shop.example/p/1', status: 200, headers: [], route: null, meta: null },
      ...{ contentType: 'text/html', contentTypeHeader: 'text/html; charset=utf-8', body: Buffer.from(html) },
    }),
  );
}

const origins = (value: Parameters<typeof candidatesFor>[1]) =>
  candidatesFor(facts(), value).map(({ origin, type }) => ({ ...origin, type }));

describe('a value', () => {
  test('is found in structured data, meta tags and elements, those that say what it is first', () => {
    const found = origins('Blue mug');
    expect(found.slice(0, 3)).toEqual([
      { jsonLd: 'Product.name', type: 'text' },
      { meta: 'og:title', type: 'text' },
      { css: 'h1', type: 'text' },
    ]);
  });

  test('is found as a number, amount, date or address where no text is the same', () => {
    expect(origins('12.5')[0]).toEqual({ jsonLd: 'Product.offers.price', type: 'number' });
    expect(origins(12.5)).toContainEqual({ css: '.price', type: 'number' });
    expect(origins('EUR 12.50')).toContainEqual({ css: '.price', type: 'money' });
    expect(origins({ amount: 15, currency: 'EUR' })[0]).toEqual({ css: '.old', type: 'money' });
    expect(origins('2026-02-01T00:00:00Z')).toEqual([]);
    expect(origins('Feb 1, 2026')[0]).toEqual({ css: 'time', attr: 'datetime', type: 'date' });
    expect(origins('https://shop.example/img/1.jpg')[0]).toEqual({
      ...{ css: '[itemprop="image"]', attr: 'src', type: 'url' },
    });
  });

  test('beside a label is found by the label', () => {
    expect(origins('blue')[0]).toEqual({ css: 'dt:contains("Colour") + dd', type: 'text' });
  });

  test('is never found by names that a program made, or by an element that another comes before', () => {
    const all = JSON.stringify(origins('Blue mug'));
    expect(all).not.toContain('css-1x2y3z');
    expect(origins('15,00 €')).not.toContainEqual({ css: '.price', type: 'text' });
  });

  test('that no page has gives nothing', () => {
    expect(origins('Green mug')).toEqual([]);
    expect(candidatesFor(facts('no html at all'), 'x')).toEqual([]);
  });
});

test('fields without a value are found by their names and types', () => {
  const named = (name: string, type: Parameters<typeof candidatesNamed>[2]) =>
    candidatesNamed(facts(), name, type).map(({ origin }) => origin);
  expect(named('title', 'text').slice(0, 2)).toEqual([{ jsonLd: 'Product.name' }, { meta: 'og:title' }]);
  expect(named('price', 'number')[0]).toEqual({ jsonLd: 'Product.offers.price' });
  expect(named('weight', 'number')).toContainEqual({ css: 'dt:contains("Weight") + dd' });
  expect(named('image', 'url')[0]).toEqual({ css: '[itemprop="image"]', attr: 'src' });
  expect(named('price', 'date')).toEqual([]);
  expect(named('constructor', 'text')).toEqual([]);
});

test('known and read values are compared as what they are', () => {
  expect(isSameValue('Blue  mug', 'Blue mug')).toBe(true);
  expect(isSameValue('12.50', 12.5)).toBe(true);
  expect(isSameValue('12,50 €', { amount: 12.5, currency: 'EUR' })).toBe(true);
  expect(isSameValue({ amount: 1, currency: null }, { amount: 1, currency: 'EUR' })).toBe(false);
  expect(isSameValue('Feb 1, 2026', '2026-02-01')).toBe(true);
  expect(isSameValue('x', null)).toBe(false);
});

test('what is right and filled most comes first, then what lasts; what is wrong is left out', () => {
  const tried = (css: string, changes: Partial<Tried>): Tried => ({
    ...{ origin: { css }, type: 'text', cost: 3, known: 2, right: 2, pages: 20, filled: 20, different: 20 },
    ...changes,
  });
  const order = rankTried([
    tried('.constant', { different: 1, cost: 1 }),
    tried('.seldom', { filled: 10, cost: 1 }),
    tried('.place', { cost: 15 }),
    tried('.best', {}),
    tried('.wrong', { right: 0, cost: 0 }),
    tried('.half', { right: 1, cost: 0 }),
  ]).map(({ origin }) => origin.css);
  expect(order).toEqual(['.best', '.place', '.constant', '.seldom', '.half']);
});
