import { describe, expect, test } from 'vitest';
import type { MediaRule } from '../../../../src/core/job-schema/job.ts';
import { compileJob } from '../../../../src/worker/compile-job.ts';
import { LINKS_PER_PAGE_MAX } from '../../../../src/worker/links/link-scanner.ts';
import { compileMedia } from '../../../../src/worker/media/find-media.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { specOf } from '../../../support/fixtures.ts';

const PAGE_URL = 'https://shop.example/product/1';
const options = specOf().url;

function pageOf(html: string, contentType = 'text/html'): Page {
  return new Page({
    url: PAGE_URL,
    status: 200,
    contentType,
    contentTypeHeader: null,
    headers: [],
    body: Buffer.from(html),
    route: 'product',
    meta: null,
  });
}

const rule = (draft: Partial<Exclude<MediaRule, string>>) => ({ priority: 0, ...draft }) as MediaRule;
const find = (rules: MediaRule[], html: string, values: Record<string, unknown>[] = []) =>
  compileMedia(rules, 'product', options)(pageOf(html), values);
const urls = (rules: MediaRule[], html: string, values?: Record<string, unknown>[]) =>
  find(rules, html, values).map(({ url }) => url.replace('https://shop.example', ''));

describe('elements that a selector matches', () => {
  test.each([
    ['<img src=/a.jpg>', ['/a.jpg']],
    ['<img src="data:image/gif;base64,R0lGOD" data-src="/a.jpg">', ['/a.jpg']],
    ['<img src=/blank.gif data-src=/a.jpg>', ['/a.jpg']],
    ['<img srcset="/s.jpg 320w, /l.jpg 640w">', ['/l.jpg']],
    ['<img src="" srcset="/s.jpg 1x, /l.jpg 2x">', ['/l.jpg']],
    ['<picture><source srcset="/l.avif 2x, /s.avif"></picture>', ['/l.avif']],
    ['<video src=/film.mp4 poster=/film.jpg></video>', ['/film.mp4', '/film.jpg']],
    ['<video poster=/film.jpg></video>', ['/film.jpg']],
    ['<audio src=/song.mp3></audio>', ['/song.mp3']],
    ['<a href=/manual.pdf>manual</a>', ['/manual.pdf']],
    ['<link rel=icon href=/icon.png>', ['/icon.png']],
    ['<meta property="og:image" content="/og.jpg">', ['/og.jpg']],
    ['<object data=/map.svg></object>', ['/map.svg']],
    ['<div data-src=/lazy.jpg></div>', ['/lazy.jpg']],
    ['<img>', []],
  ])('%s shows %j', (html, expected) => {
    const css = 'img, source, video, audio, a, link, meta, object, div';
    expect(urls([css], html)).toEqual(expected);
  });

  test('give the attribute that the rule names', () => {
    const html = '<img src=/a.jpg data-full=/full.jpg srcset="/s.jpg 1x, /l.jpg 2x">';
    expect(urls([rule({ css: 'img', attr: 'data-full' })], html)).toEqual(['/full.jpg']);
    expect(urls([rule({ css: 'img', attr: 'srcset' })], html)).toEqual(['/l.jpg']);
    expect(urls([rule({ css: 'img', attr: 'title' })], html)).toEqual([]);
  });

  test('are meant from the base of the page, each URL once, web addresses only', () => {
    const html = `<base href="https://cdn.example/x/"><img src="a.jpg#1"><img src=a.jpg><img src="https://cdn.example/x/a.jpg?utm_source=b">
      <img src="javascript:alert(1)"><img src="ftp://a.example/b.jpg"><img src="data:image/png;base64,AAAA"><img src="blob:x">`;
    expect(find(['img'], html).map(({ url, host }) => [url, host])).toEqual([
      ['https://cdn.example/x/a.jpg', 'cdn.example'],
    ]);
  });

  test('become tasks of the rule’s route, at no further depth, and know where they were shown', () => {
    const html = '<img class=main src=/a.jpg alt=" A lamp "><img src=/b.jpg>';
    const rules = [rule({ css: '.main', route: 'pictures', priority: 5 }), 'img'];
    expect(find(rules, html)).toEqual([
      {
        url: 'https://shop.example/a.jpg',
        host: 'shop.example',
        route: 'pictures',
        priority: 5,
        listed: true,
        meta: { referrer: PAGE_URL, alt: 'A lamp' },
      },
      {
        url: 'https://shop.example/b.jpg',
        host: 'shop.example',
        route: '@media',
        priority: 0,
        listed: true,
        meta: { referrer: PAGE_URL },
      },
    ]);
  });

  test('are none where the page is no HTML', () => {
    const finder = compileMedia(['img'], 'product', options);
    expect(finder(pageOf('<img src=/a.jpg>', 'application/json'), [])).toEqual([]);
  });

  test('are so many and no more', () => {
    const values = [{ images: Array.from({ length: LINKS_PER_PAGE_MAX + 5 }, (_, at) => `/${at}.jpg`) }];
    expect(find([rule({ field: 'images' })], '', values)).toHaveLength(LINKS_PER_PAGE_MAX);
  });
});

describe('fields of a record', () => {
  test('hold a URL or lists of them, absolute or as in the page', () => {
    const values = [
      { image: '/a.jpg', gallery: ['/b.jpg', ['https://cdn.example/c.jpg'], null, 7, { url: '/d.jpg' }] },
      { image: null },
      { image: '/e.jpg' },
    ];
    expect(urls([rule({ field: 'image' }), rule({ field: 'gallery' })], '', values)).toEqual([
      '/a.jpg',
      '/e.jpg',
      '/b.jpg',
      'https://cdn.example/c.jpg',
    ]);
    const json = pageOf('{}', 'application/json');
    const finder = compileMedia([rule({ field: 'image' })], 'product', options);
    expect(finder(json, values).map(({ url }) => url)).toHaveLength(2);
  });
});

test('the text beside a picture is kept, whichever rule finds it first', () => {
  const rules = [rule({ field: 'image', priority: 7 }), 'img'];
  const html = '<img src=/a.jpg alt=" Oak chair "><img src=/a.jpg alt="Again"><img src=/b.jpg alt="">';
  const [first, second, ...more] = find(rules, html, [{ image: '/a.jpg' }]);
  expect(first).toMatchObject({ priority: 7, meta: { referrer: PAGE_URL, alt: 'Oak chair' } });
  expect(second!.meta).toEqual({ referrer: PAGE_URL });
  expect(more).toEqual([]);
});

describe('mistakes are found before the job runs', () => {
  const route = (media: MediaRule[]) => ({ name: 'product', media });
  test.each([
    [['img['], /media rule of route 'product' .* not valid CSS: img\[/],
    [[rule({})], /neither a selector nor a field/],
    [[rule({ css: 'img', field: 'image' })], /a field and a selector/],
    [[rule({ css: 'img', route: 'pictures' })], /uses 'pictures', which is not a route of kind media/],
    [[rule({ css: 'img', route: 'product' })], /uses 'product', which is not a route of kind media/],
  ])('%j', async (media, message) => {
    await expect(compileJob(specOf({ routes: [route(media)] }), new Map())).rejects.toThrow(message);
  });

  test('a route of kind media may be named', async () => {
    const routes = [
      route([rule({ css: 'img', route: 'pictures' })]),
      { name: 'pictures', kind: 'media' as const },
    ];
    await expect(compileJob(specOf({ routes }), new Map())).resolves.toBeDefined();
  });
});
