import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import net from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { isPublicAddress } from '../../../../src/core/url/address.ts';
import { DNS_TTL_MS, type Lookup } from '../../../../src/fetch/network/dns-cache.ts';
import { type Crawled, crawl } from '../../../support/coordinator/crawl-setup.ts';
import { lookupOf } from '../../../support/fetch/http-fetcher-setup.ts';
import { realClock } from '../../../support/real-clock.ts';
import {
  openRawOrigin,
  type RawHandler,
  type RawOrigin,
  type RawRequest,
  reply,
} from '../../../support/servers/raw-origin.ts';

/**
 * Crawls that are led to private addresses. 127.0.0.1 stands for the public Internet here, with the guard's own list for
 * everything else; 127.0.0.2 and ::1 listen, and must never be asked.
 */
const isAllowed = (ip: string) => ip === '127.0.0.1' || isPublicAddress(ip);

/** P stands for the port of the site, which the traps have too. */
const PRIVATE = {
  loopback: ['http://127.0.0.2:P/', 'http://[::1]:P/', 'http://127.255.255.254/', 'http://0.0.0.0:P/'],
  private: ['http://10.0.0.1/', 'http://172.16.0.1/', 'http://192.168.1.1/', 'http://[fc00::1]/'],
  linkLocal: ['http://169.254.0.1/', 'http://[fe80::1]/'],
  metadata: [
    'http://169.254.169.254/latest/meta-data/',
    'http://[fd00:ec2::254]/latest/',
    'http://100.100.100.200/',
    'http://168.63.129.16/',
  ],
  mappedV4: ['http://[::ffff:127.0.0.2]:P/', 'http://[::ffff:a9fe:a9fe]/'],
  nat64: [
    'http://[64:ff9b::127.0.0.2]:P/',
    'http://[64:ff9b:1::127.0.0.2]:P/',
    'http://[64:ff9b:1::8.8.8.8]/',
  ],
  sixToFour: ['http://[2002:7f00:2::]:P/', 'http://[2002:a9fe:a9fe::1]/'],
  teredo: ['http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/'],
  decimal: ['http://2130706434:P/', 'http://2852039166/'],
  octal: ['http://0177.0.0.2:P/', 'http://0251.0376.0251.0376/'],
  hexadecimal: ['http://0x7f000002:P/', 'http://0x7f.0x0.0x0.0x2:P/', 'http://127.2:P/'],
  names: ['http://inside.test:P/', 'https://inside.test:P/', 'http://localhost:P/'],
};

let site: RawOrigin;
let forms: string[] = [];
const traps: net.Server[] = [];
let trapped = 0;
const dialled = new Set<string>();
let onHome = () => {};

/** The form that a request of the site is about: `/moved?3`. */
const formOf = ({ path }: RawRequest) => forms[Number(path.split('?')[1])]!;
const every = (make: (form: string) => string) => forms.map(make).join('');

const answers =
  (body: string | (() => string), type = 'text/html'): RawHandler =>
  (socket) => {
    const text = typeof body === 'string' ? body : body();
    socket.write(reply('200 OK', [`Content-Type: ${type}`, 'Connection: close'], text));
  };

const leadsTo =
  (place: (request: RawRequest) => string): RawHandler =>
  (socket, request) =>
    void socket.write(reply('302 Found', [`Location: ${place(request)}`, 'Connection: close']));

beforeAll(async () => {
  site = await openRawOrigin({
    '/links': answers(() => every((form) => `<a href="${form}">in</a>`)),
    '/pictures': answers(() => every((form) => `<img src="${form}">`)),
    '/moved': leadsTo(formOf),
    '/moved-twice': leadsTo(({ path }) => path.replace('-twice', '')),
    '/sitemap.xml': answers(
      () => `<urlset>${every((form) => `<url><loc>${form}</loc></url>`)}</urlset>`,
      'text/xml',
    ),
    '/index.xml': answers(
      () => `<sitemapindex>${every((form) => `<sitemap><loc>${form}</loc></sitemap>`)}</sitemapindex>`,
      'text/xml',
    ),
    // Of the hosts n3.test and so on: each has its own.
    '/robots.txt': (socket, request) => {
      const number = /^host: n(\d+)\.test/im.exec(request.head)?.[1];
      if (number === undefined)
        answers(
          every((form) => `Sitemap: ${form}\n`),
          'text/plain',
        )(socket, request);
      else leadsTo(() => forms[Number(number)]!)(socket, request);
    },
    '/page': answers('<h1>a page</h1>'),
    '/home': (socket, request) => {
      onHome();
      answers('<a href="/page">a page</a>')(socket, request);
    },
  });
  forms = Object.values(PRIVATE)
    .flat()
    .map((url) => url.replace(':P/', `:${site.port}/`));
  for (const address of ['127.0.0.2', '::1']) {
    const trap = net.createServer((socket) => {
      trapped++;
      socket.end(reply('200 OK', [], 'secret'));
    });
    trap.listen(site.port, address);
    try {
      await once(trap, 'listening');
    } catch (error) {
      // On a machine without IPv6 nobody can be there; that it is not dialled is seen without a trap.
      if ((error as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL' && address === '::1') continue;
      throw error;
    }
    traps.push(trap);
  }
});

const onSocket = (message: unknown) => {
  const { socket } = message as { socket: net.Socket };
  socket.on('connectionAttempt', (ip: string) => dialled.add(ip));
};

beforeEach(() => {
  trapped = 0;
  dialled.clear();
  subscribe('net.client.socket', onSocket);
});

afterEach(() => unsubscribe('net.client.socket', onSocket));

afterAll(async () => {
  await site.close();
  for (const trap of traps) trap.close();
});

/** Numbered hosts are public; all other names are not. */
const lookup: Lookup = (name, options, callback) =>
  lookupOf(/^n\d+\.test$/.test(name) ? ['127.0.0.1'] : ['127.0.0.2', '::1']).lookup!(name, options, callback);

const WITHOUT_ROBOTS = { politeness: { rate: 'max', robots: false } } as const;
const guarded = (input: Partial<JobInput>) => crawl(input, { isPublicAddress: isAllowed, lookup });
const numbered = (path: string) => forms.map((_, index) => `${site.url}${path}?${index}`);

/** Several forms are the same address. */
const places = () => [...new Set(forms.map((form) => new URL(form).href))].sort();

function expectUntouched(): void {
  expect([...dialled].filter((ip) => ip !== '127.0.0.1')).toEqual([]);
  expect(trapped).toBe(0);
}

function refusedOf({ tasks }: Crawled): string[] {
  return tasks
    .filter(({ state, failureCode }) => state === 'dead' && failureCode === 'private-address')
    .map(({ url }) => url)
    .sort();
}

describe('private addresses in all their forms are refused', () => {
  test('as seeds', async () => {
    const crawled = await guarded({ ...WITHOUT_ROBOTS, sources: forms });
    expect(refusedOf(crawled)).toEqual(places());
    expect(crawled.counters).toMatchObject({ dead: places().length, requests: 0 });
    expectUntouched();
  });

  test.each(['/moved', '/moved-twice'])('behind the redirects of %s', async (path) => {
    const crawled = await guarded({ ...WITHOUT_ROBOTS, sources: numbered(path) });
    expect(refusedOf(crawled)).toEqual(numbered(path).sort());
    expectUntouched();
  });

  test('behind redirects that become tasks of their own', async () => {
    const crawled = await guarded({ ...WITHOUT_ROBOTS, sources: numbered('/moved'), redirects: 'discover' });
    expect(refusedOf(crawled)).toEqual(places());
    expectUntouched();
  });

  test.each<[string, () => Partial<JobInput>]>([
    ['links', () => ({ sources: [`${site.url}/links`], follow: 'any' })],
    ['sitemaps', () => ({ sources: [{ sitemap: `${site.url}/sitemap.xml`, within: 'any' }] })],
    ['indexes of sitemaps', () => ({ sources: [{ sitemap: `${site.url}/index.xml`, within: 'any' }] })],
    ['robots.txt, as sitemaps', () => ({ sources: [{ sitemap: site.url, within: 'any' }] })],
    [
      'pages, as media',
      () => ({ sources: [`${site.url}/pictures`], routes: [{ name: 'page', media: ['img'] }] }),
    ],
  ])('in %s', async (_, input) => {
    const crawled = await guarded({ ...WITHOUT_ROBOTS, ...input() });
    expect(refusedOf(crawled)).toEqual(places());
    expect(crawled.counters).toMatchObject({ done: 1, requests: 1 });
    expectUntouched();
  });

  test('when their robots.txt would be asked for first', async () => {
    const crawled = await guarded({ sources: forms });
    expect(refusedOf(crawled)).toEqual(places());
    expect(crawled.counters.requests).toBe(0);
    expectUntouched();
  });

  test('when a robots.txt redirects there', async () => {
    const sources = forms.map((_, index) => `http://n${index}.test:${site.port}/page`);
    const { counters, tasks } = await guarded({ sources });
    // There are rules which cannot be read, so the pages are left alone: one request each, for the robots.txt.
    expect(counters).toMatchObject({ done: 0, dead: forms.length, requests: forms.length });
    expect(new Set(tasks.map(({ failureCode }) => failureCode))).toEqual(new Set(['robots-unreachable']));
    expectUntouched();
  });
});

describe('names that change their mind', () => {
  test('are checked anew at every connection', async () => {
    const { asked, lookup } = lookupOf(['127.0.0.1'], ['127.0.0.2']);
    let offset = 0;
    // The look-up is forgotten by the next request.
    onHome = () => {
      offset += DNS_TTL_MS + 1;
    };
    const clock = { now: () => realClock.now() + offset };
    const { tasks } = await crawl(
      {
        ...WITHOUT_ROBOTS,
        sources: [`http://rebind.test:${site.port}/home`],
        follow: true,
      },
      { isPublicAddress: isAllowed, lookup, clock },
    );
    expect(asked).toEqual(['rebind.test', 'rebind.test']);
    expect(tasks.map(({ failureCode }) => failureCode)).toEqual([null, 'private-address']);
    expectUntouched();
  });

  test('and have answers of both kinds lead only to the public one', async () => {
    const { lookup } = lookupOf(['127.0.0.2', '127.0.0.1', '::1']);
    const { tasks } = await crawl(
      { ...WITHOUT_ROBOTS, sources: [`http://both.test:${site.port}/page`] },
      { isPublicAddress: isAllowed, lookup },
    );
    expect(tasks).toMatchObject([{ state: 'done' }]);
    expectUntouched();
  });
});

describe('private addresses are open', () => {
  const settings: Partial<JobInput> = { ...WITHOUT_ROBOTS, allowPrivate: true };

  test('to a job that allows them, in a worker that leaves it to the job', async () => {
    const { tasks } = await crawl({ ...settings, sources: [`http://127.0.0.2:${site.port}/`] });
    expect([tasks[0]!.state, trapped]).toEqual(['done', 1]);
  });

  test('to no job in a worker that forbids them', async () => {
    const { tasks } = await crawl(
      { ...settings, sources: [`http://127.0.0.2:${site.port}/`] },
      { forbidsPrivate: true },
    );
    expect(tasks).toMatchObject([{ state: 'dead', failureCode: 'private-address' }]);
    expect(trapped).toBe(0);
  });
});
