import { describe, expect, test } from 'vitest';
import type { BatchTask } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import { processTask } from '../../../../src/worker/batch/process-task.ts';
import { compileJob } from '../../../../src/worker/compile-job.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { permissionsOf, robotsTagsOf } from '../../../../src/worker/page/robots-tags.ts';
import { specOf, T0 } from '../../../support/fixtures.ts';
import { realClock } from '../../../support/real-clock.ts';

const refuse = () => Promise.reject(new Error('no blobs here'));
const NO_BLOBS: Blobs = {
  ...{ write: refuse, put: refuse, has: refuse, read: refuse, delete: refuse, close: refuse },
  locate: (key) => key,
  async *list() {},
};
const OURS = 'Seine/1.0 (+https://seine.example)';

function tagsOf(html: string, headers: string[] = [], type = 'text/html'): string | null {
  const page = new Page({
    url: 'https://a.example/',
    status: 200,
    contentType: type,
    contentTypeHeader: type,
    headers,
    body: Buffer.from(html),
    route: null,
    meta: null,
  });
  return robotsTagsOf(page, OURS);
}

describe('meta tags', () => {
  test.each([
    ['<meta name="robots" content="noindex, nofollow">', 'nofollow, noindex'],
    ["<META CONTENT='NoIndex' NAME='ROBOTS'>", 'noindex'],
    ['<meta name=robots content=noindex>', 'noindex'],
    ['<meta name=robots content=none/>', null],
    ['<meta name=robots content=none />', 'none'],
    ['<meta\n  name = "robots"\n  content = "noai,noimageai"\n/>', 'noai, noimageai'],
    ['<meta name="robots" content="noindex"><meta name="robots" content="noarchive">', 'noarchive, noindex'],
    ['<meta name="robots" content="noindex nofollow">', 'nofollow, noindex'],
    ['<meta name="robots" content="no&#105;ndex">', 'noindex'],
    ['<meta name="robots" content="index, follow, max-image-preview:large">', null],
    ['<meta name="robots" content="notnoindex, noindexes, no-index">', null],
    ['<meta name="robots">', null],
    ['<meta name="robots" content>', null],
    ['<meta data-x="a > b" name="robots" content="noindex">', 'noindex'],
    ['<meta data-name="robots" content="noindex">', null],
    ['<meta name="googlebot" content="noindex">', null],
    ['<meta name="seine" content="noindex">', 'noindex'],
    ['<meta name="Seine" content="nofollow"><p>', 'nofollow'],
    ['<meta property="robots" content="noindex">', null],
    ['<metadata name="robots" content="noindex">', null],
    ['<html><head><title>a</title></head><meta name="robots" content="noindex">', null],
    ['<p>text<meta name="robots" content="noindex">', 'noindex'],
  ])('%s', (html, tags) => {
    expect(tagsOf(`<!doctype html>${html}`)).toBe(tags);
  });

  test.each([
    ['a comment', '<!-- <meta name="robots" content="noindex"> -->'],
    ['a script', '<script>document.write(\'<meta name="robots" content="noindex">\')</script>'],
    ['a style sheet', '<style>/* <meta name="robots" content="noindex"> */</style>'],
    ['the title', '<title><meta name="robots" content="noindex"></title>'],
    ['an attribute', '<link title=\'<meta name="robots" content="noindex">\'>'],
    ['the body', '<body><meta name="robots" content="noindex"></body>'],
    ['text', '<body><p>&lt;meta name="robots" content="noindex"&gt;'],
    ['a template', '<template><meta name="robots" content="noindex"></template>'],
    ['what never ends', '<meta name="robots" content="noindex'],
  ])('that only look like one, in %s, say nothing', (_, html) => {
    expect(tagsOf(`<html><head>${html}`)).toBeNull();
    expect(tagsOf(`<html><head>${html}</head>`)).toBeNull();
  });

  test('are found behind a long style sheet, and not looked for in other files', () => {
    const meta = '<meta name="robots" content="noindex">';
    expect(tagsOf(`<head><style>${'a{b:c}'.repeat(20_000)}</style>${meta}</head>`)).toBe('noindex');
    expect(tagsOf(meta, [], 'text/plain')).toBeNull();
    expect(tagsOf(meta, ['X-Robots-Tag', 'noai'], 'image/png')).toBe('noai');
  });

  test('are read anew in each page, whatever quotes the one before had', () => {
    tagsOf(`<head><link title="a">${' '.repeat(5_000)}'</head>`);
    expect(tagsOf(`<head><link title='"a"><meta name="robots" content="noindex">'></head>`)).toBeNull();
  });

  test('cost no more than the length of a hostile page', () => {
    const started = process.threadCpuUsage().user;
    for (const piece of [
      '<meta name=robots ',
      '<meta name="robots" content="',
      '<!--robots',
      "<meta a='robots",
      '<',
    ])
      tagsOf(piece.repeat(1_000_000));
    tagsOf(`<meta robots ${'a'.repeat(4_000_000)}>`);
    tagsOf(`<meta robots ${'a ='.repeat(1_000_000)}>`);
    expect(process.threadCpuUsage().user - started).toBeLessThan(5_000_000);
  });

  test('are found wherever the first part of a long head ends', () => {
    const tag = '<bodyguard a="<body>"><meta name="robots" content="noindex"><b';
    for (let before = 4_096 - tag.length; before <= 4_096; before++) {
      const head = `<head><!--${'x'.repeat(before - 13)}-->`;
      expect(tagsOf(`${head}${tag}>é</head><meta name="robots" content="noai">`)).toBe('noindex');
    }
  });
});

describe('headers', () => {
  const header = (...values: string[]) =>
    tagsOf(
      '',
      values.flatMap((value) => ['X-Robots-Tag', value]),
    );

  test.each([
    ['noindex', 'noindex'],
    ['NOINDEX , NoFollow', 'nofollow, noindex'],
    ['googlebot: noindex', null],
    ['googlebot: noindex, nofollow', null],
    ['noai, googlebot: noindex, nofollow', 'noai'],
    ['googlebot: noindex, seine: nofollow', 'nofollow'],
    ['Seine: none', 'none'],
    ['*: noindex', 'noindex'],
    ['unavailable_after: 25 Jun 2010 15:00:00 PST', null],
    ['unavailable_after: 25 Jun 2010 15:00:00 PST, noindex', 'noindex'],
    ['max-snippet:-1, max-image-preview: large, noarchive', 'noarchive'],
    ['', null],
    [':', null],
    [',,;', null],
  ])('%j', (value, tags) => {
    expect(header(value)).toBe(tags);
  });

  test('of several lines, in any case, add up with those of the page', () => {
    expect(header('noindex', 'otherbot: noai', 'noarchive')).toBe('noarchive, noindex');
    const page = '<meta name=robots content=nofollow>';
    expect(tagsOf(page, ['x-robots-tag', 'noai', 'X-ROBOTS-TAG', 'noai'])).toBe('noai, nofollow');
  });
});

test('a job that only records may do everything; one that obeys may not', () => {
  const all = { links: true, records: true, archive: true, media: true };
  expect(permissionsOf('noai, none', 'record')).toEqual(all);
  expect(permissionsOf(null, 'obey')).toEqual(all);
  expect(permissionsOf('nofollow', 'obey')).toEqual({ ...all, links: false });
  expect(permissionsOf('noindex', 'obey')).toEqual({ ...all, records: false, archive: false });
  expect(permissionsOf('none', 'obey')).toEqual({ ...all, links: false, records: false, archive: false });
  expect(permissionsOf('noai', 'obey')).toEqual({ ...all, records: false, archive: false, media: false });
  expect(permissionsOf('noimageai', 'obey')).toEqual({ ...all, media: false });
  expect(permissionsOf('noarchive', 'obey')).toEqual({ ...all, archive: false });
});

describe('a task', () => {
  const SEEN = { archived: 0 };

  /** One page, fetched by the worker's own function from a fetcher that has only this page. */
  async function visit(robotsTags: 'record' | 'obey', tags: string, input: Partial<JobInput> = {}) {
    const spec = specOf({
      follow: true,
      politeness: { robotsTags },
      routes: [{ name: 'p', select: { title: 'h1' } }],
      ...input,
    });
    const job = await compileJob(spec, new Map());
    for (const route of job.routes)
      route.findMedia = () => [
        { url: 'https://a.example/i.png', host: 'a.example', priority: 0, route: null },
      ];
    const html = `<meta name=robots content="${tags}"><h1>Title</h1><a href="/next">next</a><img src=/i.png>`;
    const body = Buffer.from(html);
    const task: BatchTask = {
      id: 7,
      url: 'https://a.example/',
      permit: 0,
      depth: 0,
      route: null,
      attempt: 1,
      hops: 0,
      meta: null,
      lastVisit: null,
    };
    SEEN.archived = 0;
    const outcome = await processTask(task, {
      job,
      codeOf: () => {
        throw new Error('the route has no code');
      },
      clock: realClock,
      fetcher: {
        fetch: async () => ({
          kind: 'response',
          status: 200,
          statusText: 'OK',
          rawHeaders: ['content-type', 'text/html'],
          wireBody: body,
          body,
          wireBytes: body.length,
        }),
        close: async () => {},
      },
      signal: new AbortController().signal,
      parallel: 1,
      onSent: () => true,
      keep: {
        page() {
          SEEN.archived++;
          return { offset: 0, length: T0 };
        },
        revisit() {},
        errors: false,
      },
      blobs: NO_BLOBS,
      media: { put: () => Promise.reject(new Error('no media here')) },
      onQuality: () => {},
      onTrouble: () => {},
      pressure: () => null,
    });
    expect(outcome.kind).toBe('fetched');
    const { page, links, records, shows } = outcome as Extract<Outcome, { kind: 'fetched' }>;
    return {
      tags: page.robotsTags,
      kept: page.archive !== null && SEEN.archived === 1,
      links: links.map(({ url }) => new URL(url).pathname),
      records: records.length,
      shows: shows.length,
    };
  }

  test('records what the page says and, unless told to obey, does not mind', async () => {
    expect(await visit('record', 'none, noai')).toEqual({
      tags: 'noai, none',
      kept: true,
      links: ['/next', '/i.png'],
      records: 1,
      shows: 1,
    });
  });

  test.each([
    ['all', { tags: null, kept: true, links: ['/next', '/i.png'], records: 1, shows: 1 }],
    ['nofollow', { kept: true, links: ['/i.png'], records: 1, shows: 1 }],
    ['noindex', { kept: false, links: ['/next', '/i.png'], records: 0, shows: 1 }],
    ['none', { kept: false, links: ['/i.png'], records: 0, shows: 1 }],
    ['noai', { kept: false, links: ['/next'], records: 0, shows: 0 }],
    ['noimageai', { kept: true, links: ['/next'], records: 1, shows: 0 }],
    ['noarchive', { kept: false, links: ['/next', '/i.png'], records: 1, shows: 1 }],
  ])('obeys %s', async (tags, expected) => {
    expect(await visit('obey', tags)).toMatchObject(expected);
  });

  test('obeys for further pages of a list as for other links', async () => {
    const paged = { routes: [{ name: 'p', paginate: { next: 'a' } }], follow: false };
    expect((await visit('obey', 'all', paged)).links).toContain('/next');
    expect((await visit('obey', 'nofollow', paged)).links).not.toContain('/next');
  });
});
