import { describe, expect, test } from 'vitest';
import {
  pathOf,
  shownName,
  sourceObjectOf,
  stdinFileName,
  unknownRouteOf,
  withPath,
} from '../../../../src/core/job-schema/source-name.ts';

describe('what a source written as a string is', () => {
  test.each([
    ['https://shop.example/', { url: 'https://shop.example/' }],
    ['HTTPS://shop.example/a.csv', { url: 'HTTPS://shop.example/a.csv' }],
    ['https://shop.example/?file=a.parquet', { url: 'https://shop.example/?file=a.parquet' }],
    ['https://shop.example/a.parquet?sign=x', { file: 'https://shop.example/a.parquet?sign=x', priority: 0 }],
    ['s3://bucket/a/*.csv', { file: 's3://bucket/a/*.csv', priority: 0 }],
    ['urls.txt', { file: 'urls.txt', priority: 0 }],
    ['sitemap:https://shop.example', { sitemap: 'https://shop.example', within: 'site', priority: 0 }],
    ['sitemap:./a.xml', { sitemap: './a.xml', within: 'site', priority: 0 }],
  ])('%s', (text, object) => {
    expect(sourceObjectOf(text)).toEqual(object);
  });

  test('an object stays as it is', () => {
    const source = { file: 'a.csv', priority: 3 };
    expect(sourceObjectOf(source)).toBe(source);
  });
});

test('only paths are moved', () => {
  const moved = (source: Parameters<typeof withPath>[0]) => withPath(source, (path) => `/base/${path}`);
  for (const same of [
    'https://shop.example/a',
    's3://bucket/a',
    '-',
    'sitemap:https://shop.example',
    'sitemap:shop.example',
    'sitemap:shop.example:8080/',
  ])
    expect(moved(same)).toBe(same);
  expect(moved('data/*.csv')).toBe('/base/data/*.csv');
  expect(moved('sitemap:map.xml')).toBe('sitemap:/base/map.xml');
  expect(withPath({ file: 'a.csv', priority: 0 }, (path) => `/b/${path}`)).toEqual({
    file: '/b/a.csv',
    priority: 0,
  });
  const sitemap = { sitemap: 'map.xml.gz', within: 'any', priority: 0 } as const;
  expect(withPath(sitemap, (path) => `/b/${path}`)).toEqual({ ...sitemap, sitemap: '/b/map.xml.gz' });
  const query = { query: 'SELECT url FROM seine_tasks', priority: 0 };
  expect(withPath(query, (path) => `/b/${path}`)).toEqual(query);
});

test('the ending of a URL is that of its path', () => {
  expect(pathOf('https://shop.example/a.csv.gz?b=c.txt')).toBe('/a.csv.gz');
  expect(pathOf('s3://bucket/a?b.csv')).toBe('s3://bucket/a?b.csv');
  expect(pathOf('a?b.csv')).toBe('a?b.csv');
});

test('routes that sources name must be there, or built in', () => {
  const routes = [{ name: 'page' }];
  const known = [
    'urls.txt',
    { file: 'a', route: 'page', priority: 0 },
    { file: 'a', columns: { a: 'page', b: '@media' }, priority: 0 },
  ];
  expect(unknownRouteOf({ sources: known, routes })).toBeNull();
  expect(unknownRouteOf({ sources: [{ query: 'x', route: 'gone', priority: 0 }], routes })).toBe('gone');
  expect(unknownRouteOf({ sources: [{ file: 'a', columns: { a: 'lost' }, priority: 0 }], routes })).toBe(
    'lost',
  );
});

test('standard input is called so wherever its rows are told of, and passwords are not told', () => {
  const name = stdinFileName(1_700_000_000_000, 4_711, 'csv');
  expect(shownName(`/data/.seine/inputs/${name}`)).toBe('standard input');
  expect(shownName('/data/stdin-list.csv')).toBe('/data/stdin-list.csv');
  expect(shownName('https://user:secret@data.example/list.csv')).toBe('https://***@data.example/list.csv');
});
