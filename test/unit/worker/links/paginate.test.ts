import { describe, expect, test } from 'vitest';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import type { Meta } from '../../../../src/core/model.ts';
import { LINKS_PER_PAGE_MAX } from '../../../../src/worker/links/link-scanner.ts';
import { compilePagination } from '../../../../src/worker/links/paginate.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { TREE_STEPS_MAX } from '../../../../src/worker/page/tree-search.ts';
import { specOf } from '../../../support/fixtures.ts';

type PaginationInput = NonNullable<NonNullable<JobInput['routes']>[number]['paginate']>;

interface About {
  url?: string;
  type?: string;
  headers?: string[];
  meta?: Meta | null;
}

function pageOf(body: string, about: About = {}): Page {
  const { url = 'https://shop.example/list', type = 'text/html', headers = [], meta = null } = about;
  const bytes = Buffer.from(body);
  return new Page({
    url,
    status: 200,
    contentType: type,
    contentTypeHeader: `${type}; charset=utf-8`,
    headers,
    body: bytes,
    route: 'list',
    meta,
  });
}

async function paginate(paginate: PaginationInput, page: Page, job: Partial<JobInput> = {}) {
  const spec = specOf({ ...job, routes: [{ name: 'list', paginate }] });
  return (await compilePagination(spec.routes[0]!.paginate!, 'list'))(page, spec);
}

const urlsOf = async (...given: Parameters<typeof paginate>) =>
  (await paginate(...given)).map(({ url }) => url);

/** Pages 2 to `last`. */
const numbered = (last: number, prefix = 'https://shop.example/list?page=') =>
  Array.from({ length: last - 1 }, (_, index) => `${prefix}${index + 2}`);

describe('a count of pages', () => {
  const url = '?page={page}';

  test('by the text of an element gives every page but the first, as listed links of the route', async () => {
    const page = pageOf('<p class=n>3 pages</p>', { meta: { shelf: 'lamps' } });
    const links = await paginate({ url, count: { css: '.n' }, priority: -5 }, page);
    expect(links).toEqual(
      numbered(3).map((url) => ({
        url,
        host: 'shop.example',
        priority: -5,
        route: 'list',
        listed: true,
        meta: { shelf: 'lamps' },
      })),
    );
  });

  test.each([
    ['Page 1 of 40', 40],
    ['1–20 of 1,234 items', 1234],
    ['1.234 Treffer', 1234],
    ['1\u202f234 résultats', 1234],
    ['1&nbsp;234 résultats', 1234],
    ["1'234 Resultate", 1234],
    ['<a>1</a><a>2</a><a>3</a> … <a>17</a>', 17],
    ['<script>99</script>2', 99],
  ])('reads %s as %i', async (text, last) => {
    expect(await urlsOf({ url, count: { css: '.n' } }, pageOf(`<div class=n>${text}</div>`))).toEqual(
      numbered(last),
    );
  });

  test('by an attribute', async () => {
    const page = pageOf('<ul data-pages=4><li>1</ul>');
    expect(await urlsOf({ url, count: { css: 'ul', attr: 'data-Pages' } }, page)).toEqual(numbered(4));
  });

  test('by a regular expression, on an element or on the page', async () => {
    const page = pageOf('<script>var state = {"page":1,"total_pages":6}</script><p>90 things, 5 left</p>');
    expect(await urlsOf({ url, count: { regex: '"total_pages":(\\d+)' } }, page)).toEqual(numbered(6));
    expect(await urlsOf({ url, count: { css: 'p', regex: '(\\d+) left' } }, page)).toEqual(numbered(5));
    expect(await urlsOf({ url, count: { css: 'p', regex: '(\\d+) right' } }, page)).toEqual([]);
  });

  test('by a path into JSON', async () => {
    const api = (body: string) =>
      pageOf(body, { url: 'https://api.example/v1/items', type: 'application/json' });
    const pages = async (body: string, json = 'meta.pages') =>
      (await urlsOf({ url, count: { json } }, api(body))).length + 1;
    expect(await pages('{"meta":{"pages":7}}')).toBe(7);
    expect(await pages('{"meta":{"pages":"8"}}')).toBe(8);
    expect(await pages('[{"total":9}]', '0.total')).toBe(9);
    for (const body of [
      '{"meta":{"pages":null}}',
      '{"meta":[]}',
      '{"meta":{"pages":-4}}',
      '{"meta":',
      '7',
      'null',
    ])
      expect(await pages(body)).toBe(1);
    expect(await pages('{"meta":{}}', 'meta.constructor.length')).toBe(1);
    expect(await pages('{"meta":{"pages":1e300}}')).toBe(10_000);
  });

  test('by a response header, also with a regular expression', async () => {
    const headers = [
      'X-Total-Count',
      '95',
      'Link',
      '<https://shop.example/list?page=2>; rel="next", <https://shop.example/list?page=12>; rel="last"',
    ];
    const page = pageOf('', { headers });
    expect(await urlsOf({ url, count: { header: 'x-total-count', perPage: 10 } }, page)).toEqual(
      numbered(10),
    );
    const regex = 'page=(\\d+)>; rel="last"';
    expect(await urlsOf({ url, count: { header: 'link', regex } }, page)).toEqual(numbered(12));
  });

  test('by the link to the last page, whose number is read with the template', async () => {
    const lastLink = 'a.last';
    const query = pageOf('<a class=last href="/list?sort=price&amp;page=5">»</a>');
    expect(await urlsOf({ url, count: { lastLink } }, query)).toEqual(numbered(5));
    const path = pageOf('<base href="/list/"><li class=last><a href="page-4.html#top">»</a>');
    const template = '/list/page-{page}.html';
    expect(await urlsOf({ url: template, count: { lastLink: '.last' } }, path)).toEqual([
      'https://shop.example/list/page-2.html',
      'https://shop.example/list/page-3.html',
      'https://shop.example/list/page-4.html',
    ]);
    const elsewhere = pageOf('<a class=last href="/other?page=5">»</a>');
    expect(await urlsOf({ url, count: { lastLink } }, elsewhere)).toEqual([]);
  });

  test('of items is divided by how many are on a page', async () => {
    const page = pageOf('<b>41 items</b>');
    expect(await urlsOf({ url, count: { css: 'b', perPage: 20 } }, page)).toEqual(numbered(3));
  });

  test.each(['999999999', '9'.repeat(400), '9,999,999,999'])(
    'of %s is cut at the most pages',
    async (text) => {
      const page = pageOf(`<b>${text}</b>`);
      expect(await urlsOf({ url, count: { css: 'b' } }, page)).toHaveLength(9_999);
      expect(await urlsOf({ url, count: { css: 'b' }, max: 5 }, page)).toEqual(numbered(5));
    },
  );

  test('is not taken from a page that is not the first, so that it is told once', async () => {
    const count = { css: 'b' };
    const at = (path: string) => pageOf('<b>3</b>', { url: `https://shop.example${path}` });
    expect(await urlsOf({ url, count }, at('/list?page=2'))).toEqual([]);
    expect(await urlsOf({ url, count }, at('/list?sort=a&page=3'))).toEqual([]);
    expect(await urlsOf({ url, count }, at('/list?page=1'))).toEqual(numbered(3));
    expect(await urlsOf({ url, count, first: 0 }, at('/list?page=0'))).toHaveLength(2);
    expect(await urlsOf({ url: '/list/{page}', count }, at('/list/2'))).toEqual([]);
    expect(await urlsOf({ url: '/list/{page}', count }, at('/list/new'))).toHaveLength(2);
  });

  test('above what one report takes goes on from the last page of each stretch', async () => {
    const most = LINKS_PER_PAGE_MAX;
    const pagination = { url, count: { css: 'b' }, max: 3 * most };
    const at = (number: number) =>
      urlsOf(pagination, pageOf('<b>25000</b>', { url: `https://shop.example/list?page=${number}` }));
    expect(await at(1)).toHaveLength(most);
    expect((await at(1)).at(-1)).toBe(`https://shop.example/list?page=${most + 1}`);
    expect(await at(most)).toEqual([]);
    expect(await at(most + 1)).toHaveLength(most);
    expect((await at(2 * most + 1)).at(-1)).toBe('https://shop.example/list?page=25000');
    expect(await at(3 * most + 1)).toEqual([]);
  });
});

describe('the template', () => {
  const three = '<b>3</b>';
  const count = { css: 'b' };

  test.each([
    ['?page={page}', '/list?q=a', '/list?page=2'],
    ['&page={page}', '/list?q=a&page=1&z', '/list?q=a&z&page=2'],
    ['&page={page}', '/list', '/list?page=2'],
    ['page/{page}/', '/list/', '/list/page/2/'],
    ['./page/{page}/', '/list/page/1/', '/list/page/2/'],
    ['/all/{page}', '/list', '/all/2'],
    ['https://cdn.example/{page}.json', '/list', 'https://cdn.example/2.json'],
  ])('%s seen from %s leads to %s', async (url, from, to) => {
    const page = pageOf(three, { url: `https://shop.example${from}` });
    expect((await urlsOf({ url, count }, page))[0]).toBe(new URL(to, page.url).href);
  });

  test('relative to the page does not pile up from page to page', async () => {
    const page = pageOf(three, { url: 'https://shop.example/list/page/2/' });
    expect(await urlsOf({ url: 'page/{page}/', count }, page)).toEqual([]);
  });

  test('may count items instead of pages', async () => {
    const api = pageOf('{"total":45}', { type: 'application/json' });
    const pagination = {
      url: '&offset={offset}&limit=20',
      count: { json: 'total', perPage: 20 },
      first: 0,
    };
    expect(await urlsOf(pagination, api)).toEqual([
      'https://shop.example/list?offset=20&limit=20',
      'https://shop.example/list?offset=40&limit=20',
    ]);
    const second = pageOf('{"total":45}', {
      type: 'application/json',
      url: 'https://shop.example/list?offset=20&limit=20',
    });
    expect(await urlsOf(pagination, second)).toEqual([]);
  });

  test('gives URLs in the spelling of the job', async () => {
    const page = pageOf(three, { url: 'https://shop.example/list' });
    const job = { url: { sortQuery: true } };
    expect((await urlsOf({ url: '?z=1&page={page}', count }, page, job))[0]).toBe(
      'https://shop.example/list?page=2&z=1',
    );
  });
});

describe('next-links', () => {
  const next = '.next';

  test('lead on from every page, with a place that grows', async () => {
    const first = pageOf('<li class=next><a href="?after=x">more</a>', { meta: { shelf: 1 } });
    expect(await paginate({ next, priority: 2 }, first)).toEqual([
      {
        url: 'https://shop.example/list?after=x',
        host: 'shop.example',
        priority: 2,
        route: 'list',
        listed: true,
        meta: { shelf: 1, '@page': 2 },
      },
    ]);
    const second = pageOf('<link class=next rel=next href="?after=y">', { meta: { '@page': 2 } });
    expect(await paginate({ next }, second)).toMatchObject([{ meta: { '@page': 3 } }]);
  });

  test('end after the most pages, whatever the site calls them', async () => {
    const page = (about: About) => pageOf('<a class=next href="?page=1&x=9">more</a>', about);
    expect(await urlsOf({ next, max: 3 }, page({ meta: { '@page': 2 } }))).toHaveLength(1);
    expect(await urlsOf({ next, max: 3 }, page({ meta: { '@page': 3 } }))).toEqual([]);
    const third = { url: 'https://shop.example/list?page=3' };
    expect(await urlsOf({ next, url: '?page={page}', max: 3 }, page(third))).toEqual([]);
  });

  test.each([
    ['nowhere', '#'],
    ['to the page itself', '/list#next'],
    ['to no page', 'javascript:next()'],
    ['to another site', 'https://elsewhere.example/list?page=2'],
    ['into a trap', '/a/a/a/a/a/a'],
  ])('%s are not followed', async (_, href) => {
    expect(await urlsOf({ next }, pageOf(`<a class=next href="${href}">more</a>`))).toEqual([]);
  });

  test('stand in for a count that is missing or garbage', async () => {
    const pagination = { next, url: '?page={page}', count: { css: '.count' } };
    for (const count of ['', '<p class=count>many</p>', '<p class=count>0</p>'])
      expect(await urlsOf(pagination, pageOf(`${count}<a class=next href="?page=2">`))).toEqual(numbered(2));
    const counted = pageOf('<p class=count>4</p><a class=next href="?page=2">');
    expect(await urlsOf(pagination, counted)).toEqual(numbered(4));
  });

  test('are not read off data', async () => {
    const page = pageOf('{"a":"<a class=next href=/x>"}', { type: 'application/json' });
    expect(await urlsOf({ next }, page)).toEqual([]);
  });
});

describe('a mistake in the job is told at the start', () => {
  const url = '?page={page}';
  test.each<[PaginationInput, string]>([
    [{}, 'needs `count` or `next`'],
    [{ count: { css: 'b' } }, 'has a count, but no url'],
    [{ url: '/list', count: { css: 'b' } }, 'has a count, but no url with {page}'],
    [{ url, count: {} }, 'has a count without css, regex, json, header or lastLink'],
    [{ url, count: { css: 'b', json: 'a' } }, 'may have only one of css, json, header and lastLink'],
    [{ url, count: { css: 'b[' } }, 'not valid CSS: b['],
    [{ next: 'a:nope' }, 'not valid CSS: a:nope'],
    [{ url, count: { regex: '(' } }, 'has an invalid regular expression'],
    [{ url, count: { regex: '(?=a)' } }, 'has an invalid regular expression'],
  ])('%j', async (pagination, problem) => {
    await expect(paginate(pagination, pageOf(''))).rejects.toThrow(problem);
    await expect(paginate(pagination, pageOf(''))).rejects.toThrow("the pagination of route 'list'");
  });
});

test('a hostile page takes no time', async () => {
  const started = process.threadCpuUsage().user;
  const deep = `${'<div class=n>'.repeat(100_000)}7`;
  expect(await urlsOf({ url: '?page={page}', count: { css: '.n' } }, pageOf(deep))).toHaveLength(6);
  const long = pageOf('a'.repeat(1_000_000));
  expect(await urlsOf({ url: '?page={page}', count: { regex: '(a*)*(\\d+)$' } }, long)).toEqual([]);
  expect(process.threadCpuUsage().user - started).toBeLessThan(5_000_000);
});

test.each<[string, PaginationInput]>([
  ['next', { next: 'i ~ u' }],
  ['the last link', { url: '?page={page}', count: { lastLink: 'i ~ u' } }],
  ['a count', { url: '?page={page}', count: { css: 'i ~ u' } }],
])('selectors that a page makes expensive have a number of steps: %s', async (_, pagination) => {
  const page = pageOf('<u></u>'.repeat(90_000));
  await expect(paginate(pagination, page)).rejects.toThrow(`more than ${TREE_STEPS_MAX} steps`);
});
