import { describe, expect, test } from 'vitest';
import type { FieldInput } from '../../../../src/core/job-schema/job.ts';
import { JSON_LD_LENGTH_MAX } from '../../../../src/worker/records/json-ld.ts';
import { cpuMsOf } from '../../../support/cpu-time.ts';
import { valueOn } from '../../../support/html/html-page.ts';

const block = (data: unknown) =>
  `<script type="application/ld+json">${typeof data === 'string' ? data : JSON.stringify(data)}</script>`;

const PRODUCT = {
  '@context': 'https://schema.org',
  '@type': 'Product',
  name: 'Oak\n chair',
  sku: 7,
  isAccessoryOrSparePartFor: { '@type': 'Product', name: 'Table' },
  brand: { '@type': 'Brand', name: 'Maren' },
  image: ['/1.jpg', { '@type': 'ImageObject', url: '/2.jpg' }],
  releaseDate: { '@type': 'Date', '@value': '1 May 2024' },
  offers: [
    { '@type': 'Offer', price: '1.299', priceCurrency: 'EUR', availability: 'https://schema.org/InStock' },
    { '@type': 'Offer', price: 20, priceCurrency: 'usd' },
  ],
};

describe('JSON-LD', () => {
  test.each<[FieldInput, unknown]>([
    [{ jsonLd: 'Product.name' }, 'Oak chair'],
    [{ jsonLd: 'Product.name', all: true }, ['Oak chair', 'Table']],
    [{ jsonLd: 'Product.sku' }, '7'],
    [{ jsonLd: 'Product.sku', type: 'number' }, 7],
    [{ jsonLd: 'Product.brand' }, 'Maren'],
    [{ jsonLd: 'Product.brand.name' }, 'Maren'],
    [{ jsonLd: 'Brand.name' }, 'Maren'],
    [{ jsonLd: 'Product.brand', type: 'json' }, PRODUCT.brand],
    [
      { jsonLd: 'Product.image', type: 'url', all: true },
      ['https://shop.example/1.jpg', 'https://shop.example/2.jpg'],
    ],
    [{ jsonLd: 'Product.releaseDate', type: 'date' }, '2024-05-01'],
    [{ jsonLd: 'Product.offers.price' }, '1.299'],
    [{ jsonLd: 'Product.offers.price', type: 'number' }, 1.299],
    [
      { jsonLd: 'Product.offers.price', type: 'money' },
      { amount: 1.299, currency: 'EUR' },
    ],
    [
      { jsonLd: 'Product.offers', type: 'money', all: true },
      [
        { amount: 1.299, currency: 'EUR' },
        { amount: 20, currency: 'USD' },
      ],
    ],
    [{ jsonLd: 'Product.offers[1].price', type: 'number' }, 20],
    [{ jsonLd: 'Product.offers.1.price', type: 'number' }, 20],
    [{ jsonLd: 'Product.brand[0].name' }, 'Maren'],
    [{ jsonLd: 'Product.offers[2].price' }, undefined],
    [{ jsonLd: 'Product.offers.availability', regex: '[^/]+$' }, 'InStock'],
    [{ jsonLd: '*.price', all: true }, ['1.299', '20']],
    [{ jsonLd: 'Product.constructor' }, undefined],
    [{ jsonLd: 'Person.name' }, undefined],
    [{ jsonLd: 'Product.offers' }, undefined],
  ])('%j is %j', async (field, value) => expect(await valueOn(block(PRODUCT), field)).toEqual(value));

  test('types are known by their whole name too, and things may have several', async () => {
    const named = (type: unknown) => valueOn(block({ '@type': type, name: 'x' }), { jsonLd: 'Product.name' });
    for (const type of [
      'http://schema.org/Product',
      'schema:Product',
      'https://x/#Product',
      ['Thing', 'Product'],
    ])
      expect(await named(type)).toBe('x');
    for (const type of ['MyProduct', 'Products', 5, null, {}, ['Thing']])
      expect(await named(type)).toBeUndefined();
  });

  test('lists, graphs and references', async () => {
    const html = block([
      { '@type': 'WebPage', mainEntity: { '@id': '#it' }, author: { '@id': '#nobody' } },
      {
        '@graph': [{ '@type': 'Product', '@id': '#it', name: 'Lamp' }, [{ '@type': 'Person', name: 'Ann' }]],
      },
    ]);
    expect(await valueOn(html, { jsonLd: 'WebPage.mainEntity.name' })).toBe('Lamp');
    expect(await valueOn(html, { jsonLd: 'WebPage.author.name' })).toBeUndefined();
    expect(await valueOn(html, { jsonLd: 'Person.name' })).toBe('Ann');
  });

  test('what stands at the top comes before what is inside', async () => {
    const html = block({ '@type': 'Page', about: { '@type': 'Product', name: 'inner' } }) + block(PRODUCT);
    expect(await valueOn(html, { jsonLd: 'Product.name' })).toBe('Oak chair');
  });

  test.each([
    ['broken', '{"@type": "Product", '],
    ['empty', ''],
    ['no object', '"Product"'],
    ['too large', JSON.stringify({ '@type': 'Product', name: 'x'.repeat(JSON_LD_LENGTH_MAX) })],
  ])('a block that is %s is passed over', async (_, text) => {
    expect(
      await valueOn(block(text) + block({ '@type': 'Product', name: 'y' }), { jsonLd: 'Product.name' }),
    ).toBe('y');
  });

  test.each([
    ['in a comment', '<!-- {"@type":"Product","name":"x"} -->'],
    ['in CDATA', '//<![CDATA[\n{"@type":"Product","name":"x"}\n//]]>'],
    ['with line breaks in texts', '{"@type":"Product","name":"x","about":"a\nb\tc"}'],
    ['with a semicolon', '{"@type":"Product","name":"x"};'],
  ])('a block %s is read', async (_, text) => {
    expect(await valueOn(block(text), { jsonLd: 'Product.name' })).toBe('x');
  });

  test.each(['application/ld+json; charset=utf-8', 'Application/LD+JSON'])('type %s', async (type) => {
    const html = `<!-- ${block({ '@type': 'Product', name: 'old' })} --><script type="${type}">{"@type":"Product","name":"x"}</script>`;
    expect(await valueOn(html, { jsonLd: 'Product.name' })).toBe('x');
  });

  test('prices of other shapes', async () => {
    const money = (offer: object) =>
      valueOn(block({ '@type': 'Offer', ...offer }), { jsonLd: 'Offer', type: 'money' });
    expect(await money({ lowPrice: '5', priceCurrency: 'GBP' })).toEqual({ amount: 5, currency: 'GBP' });
    expect(await money({ priceSpecification: [{ price: 5, priceCurrency: 'GBP' }] })).toEqual({
      amount: 5,
      currency: 'GBP',
    });
    expect(await money({ price: '€ 1.299,00' })).toEqual({ amount: 1299, currency: 'EUR' });
    expect(await money({ price: 'ask us', priceCurrency: 'EUR' })).toBeUndefined();
  });

  test('hostile data takes no time', async () => {
    const nested = `${'['.repeat(400_000)}${']'.repeat(400_000)}`;
    const many = JSON.stringify(Array.from({ length: 20_000 }, () => ({ '@id': 'x' })));
    const deep = `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`;
    for (const text of [nested, many, deep, `{"@type":"P","a":${nested}}`]) {
      for (const jsonLd of ['P.a.b', '*.a.b'])
        expect(await cpuMsOf(() => valueOn(block(text), { jsonLd, all: true }))).toBeLessThan(2_000);
    }
  });

  test('what many things refer to is not written out many times', async () => {
    const many = [
      { '@id': 'x', a: 'y'.repeat(100_000) },
      ...Array.from({ length: 5_000 }, () => ({ '@type': 'P', of: { '@id': 'x' } })),
    ];
    for (const type of ['text', 'json'] as const) {
      await expect(valueOn(block(many), { jsonLd: 'P.of.a', type, all: true })).rejects.toThrow('steps');
    }
  });
});
