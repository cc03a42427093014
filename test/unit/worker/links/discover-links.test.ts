import { describe, expect, test } from 'vitest';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { compileJob } from '../../../../src/worker/compile-job.ts';
import { discoverLinks } from '../../../../src/worker/links/discover-links.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { TREE_STEPS_MAX, VALUES_PER_FIELD_MAX } from '../../../../src/worker/page/tree-search.ts';
import { specOf } from '../../../support/fixtures.ts';

function pageOf(html: string | Buffer, { url = 'https://shop.example/', charset = 'utf-8' } = {}): Page {
  return new Page({
    url,
    status: 200,
    contentType: 'text/html',
    contentTypeHeader: `text/html; charset=${charset}`,
    headers: [],
    body: Buffer.from(html),
    route: null,
    meta: null,
  });
}

async function linksOn(
  html: string,
  follow: NonNullable<JobInput['follow']>,
  politeness: JobInput['politeness'] = {},
): Promise<string[]> {
  const job = await compileJob(specOf({ follow, politeness }), new Map());
  return discoverLinks(pageOf(html), job, 0).map(({ url }) => new URL(url).pathname);
}

test('links are those at the selector and below it, each once and in order', async () => {
  const html =
    '<a href=/out>0</a><nav><a href=/1>1</a><nav><area href=/2></nav></nav><a class=x href=/3>3</a><a href=/1>1</a>';
  expect(await linksOn(html, [{ css: 'nav, .x' }])).toEqual(['/1', '/2', '/3']);
  expect(await linksOn(html, [{ css: '.x' }, {}])).toEqual(['/3', '/out', '/1', '/2']);
});

test.each([[{}], [{ css: 'body' }]])(
  'links with rel=nofollow are followed unless the job says otherwise: %j',
  async (rule) => {
    const html =
      '<body><a href=/1>1</a><a rel=nofollow href=/2>2</a><a href=/3 rel="ugc NoFollow">3</a><a rel=nofollowed href=/4>4</a>';
    expect(await linksOn(html, [rule])).toEqual(['/1', '/2', '/3', '/4']);
    expect(await linksOn(html, [rule], { nofollow: 'skip' })).toEqual(['/1', '/4']);
  },
);

test('more elements than a field may have values are no mistake of the page', async () => {
  const count = VALUES_PER_FIELD_MAX + 5;
  const html = Array.from({ length: count }, (_, i) => `<a href=/${i % 3}>x</a>`).join('');
  expect(await linksOn(html, [{ css: 'a' }])).toEqual(['/0', '/1', '/2']);
});

test('selectors that a page makes expensive have a number of steps', async () => {
  const html = '<u></u>'.repeat(90_000);
  await expect(linksOn(html, [{ css: 'i ~ u' }])).rejects.toThrow(`more than ${TREE_STEPS_MAX} steps`);
});

test('elements in elements are looked through once', async () => {
  // 60 million steps, were each looked through by itself.
  const html = `${'<div>'.repeat(400)}<a href=/in>x</a>${'<b></b>'.repeat(150_000)}`;
  expect(await linksOn(html, [{ css: 'div' }])).toEqual(['/in']);
});

test('a selector that is no CSS is told when the job is compiled', async () => {
  await expect(compileJob(specOf({ follow: [{ css: 'a[' }] }), new Map())).rejects.toThrow(
    'a follow rule has a selector that is not valid CSS: a[',
  );
});

describe('links that were reported', () => {
  const open = async (follow: NonNullable<JobInput['follow']> = [{ within: 'any' }]) => {
    const job = await compileJob(specOf({ follow }), new Map());
    return (...page: Parameters<typeof pageOf>) =>
      discoverLinks(pageOf(...page), job, 0).map(({ url }) => url.replace('https://shop.example', ''));
  };

  test('are not reported again, and others are, wherever they stand', async () => {
    const linksOf = await open();
    expect(linksOf('<a href="/a"><a href=/b>')).toEqual(['/a', '/b']);
    expect(linksOf("<a href='/b'><p><a class=x href='/c'><area href=/a>")).toEqual(['/c']);
    expect(linksOf('<a href=/a><a href=/aa><a href=/>')).toEqual(['/aa', '/']);
  });

  test('mean another page where the page has another place or base', async () => {
    const linksOf = await open();
    expect(linksOf('<a href=a><a href=/b>')).toEqual(['/a', '/b']);
    expect(linksOf('<a href=a><a href=/b>', { url: 'https://shop.example/sub/' })).toEqual(['/sub/a']);
    expect(linksOf('<base href="https://other.example/"><a href=/b>')).toEqual(['https://other.example/b']);
    expect(linksOf('<a href=/b>', { url: 'https://other.example/' })).toEqual(['https://other.example/b']);
  });

  test('are those of one job', async () => {
    const [one, another] = [await open(), await open()];
    expect(one('<a href=/a>')).toEqual(['/a']);
    expect(another('<a href=/a>')).toEqual(['/a']);
    expect(one('<a href=/a>')).toEqual([]);
  });

  test('are known in pages of another encoding', async () => {
    const linksOf = await open();
    expect(linksOf('<p>é<a href="/é">')).toEqual(['/%C3%A9']);
    const latin = Buffer.from('<p>é<a href="/é"><a href="/ü">', 'latin1');
    expect(linksOf(latin, { charset: 'iso-8859-1' })).toEqual(['/%C3%BC']);
  });

  test('on pages with more links than are read at a time, and on pages larger than the memory for them', async () => {
    const linksOf = await open();
    const paths = Array.from({ length: 3_000 }, (_, number) => `/p/${number}`);
    const html = paths.map((path) => `<a href="${path}">x</a>`).join('');
    expect(linksOf(html)).toEqual(paths);
    expect(linksOf(`${html}<a href=/new>`)).toEqual(['/new']);
    // Nothing is remembered of pages this large, and nothing is known: what is reported twice is a task once.
    const large = `<!--${'x'.repeat(3 * 1024 * 1024)}--><a href=/p/1><a href=/large>`;
    expect(linksOf(large)).toEqual(['/p/1', '/large']);
    expect(linksOf('<a href=/p/2><a href=/large>')).toEqual(['/large']);
  });
});
