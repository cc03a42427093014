import { expect, test } from 'vitest';
import { inheritanceOf, publicMeta } from '../../../../src/core/row-meta/row-meta.ts';
import { specOf } from '../../../support/fixtures.ts';

const META = { sku: 1, title: 'a', lastmod: '2024', '@page': 3 };

test('names of our own making are no data', () => {
  expect(publicMeta(META)).toEqual({ sku: 1, title: 'a', lastmod: '2024' });
  expect(publicMeta({ '@page': 3 })).toBeNull();
});

test('pages that a row leads to have its columns', () => {
  expect(inheritanceOf(specOf({ sources: ['rows.csv'] }))(META)).toEqual(publicMeta(META));
  expect(inheritanceOf(specOf({ sources: ['rows.csv'] }))(null)).toBeNull();
});

test('what a list says of a page is not said of the pages that it links to', () => {
  expect(inheritanceOf(specOf({ sources: ['sitemap:site.example'] }))(META)).toBeNull();
  expect(inheritanceOf(specOf({ sources: ['sitemap:site.example', 'rows.csv'] }))(META)).toEqual({ sku: 1 });
  expect(inheritanceOf(specOf({ sources: ['https://site.example/'] }))(META)).toBeNull();
});
