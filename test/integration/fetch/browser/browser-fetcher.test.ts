import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browser as browserSchema } from '../../../../src/core/job-schema/browser.ts';
import { type BrowserFetcher, openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { codeOf, type RequestDraft, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { readDots } from '../../../support/browser/png-dots.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import {
  openRawOrigin,
  type RawHandler,
  type RawOrigin,
  reply,
  sends,
} from '../../../support/servers/raw-origin.ts';

/** What a real Chromium makes of pages, and what is taken of them. */

const html = (body: string, headers: string[] = []) =>
  sends(reply('200 OK', ['Content-Type: text/html; charset=utf-8', ...headers], body));
const SCRIPTED = `<!doctype html><title>shop</title><div id=list></div><script>
  fetch('/data.json').then((answer) => answer.json()).then(({ items }) => {
    document.querySelector('#list').innerHTML = items.map((item) => '<a href="item/' + item + '">' + item + '</a>').join('');
  });
</script>`;
const LAZY = `<style>div { height: 900px }</style><div>0</div><script>
  let count = 0;
  addEventListener('scroll', () => {
    if (count < 5 && scrollY + innerHeight > document.body.scrollHeight - 50) {
      count++;
      document.body.insertAdjacentHTML('beforeend', '<div>' + count + '</div>');
    }
  });
</script>`;
const FORM = `<input id=q><button onclick="document.body.insertAdjacentHTML('beforeend', '<p id=found>' + q.value + '</p>')">go</button>`;
const LONG_UTF8 = `<!doctype html><title>long</title><div>${'<p>Grüße – 你好 ü'.repeat(8_000)}</div>`;

const handlers = {
  '/scripted': html(SCRIPTED, ['Set-Cookie: a=1', 'Set-Cookie: b=2; Path=/', 'X-Name: value']),
  '/data.json': sends(reply('200 OK', ['Content-Type: application/json'], '{"items":[1,2,3]}')),
  '/late': html(SCRIPTED.replace('/data.json', '/late.json')),
  // Later than the half second after which a network counts as idle.
  '/late.json': ((socket, request) =>
    setTimeout(() => handlers['/data.json'](socket, request), 1_000)) satisfies RawHandler,
  '/lazy': html(LAZY),
  '/form': html(FORM),
  '/long': html(LONG_UTF8),
  '/lines': html(`<body>${'<p>A line, and another <b>one</b>.</p>'.repeat(60)}`),
  '/tall': html('<body style=margin:0><div style="height: 3000px">tall</div>'),
  '/latin1': sends(
    reply(
      '200 OK',
      ['Content-Type: text/html; charset=iso-8859-1'],
      Buffer.from('<p>Gr\xfc\xdfe</p>', 'latin1'),
    ),
  ),
  '/picture': sends(
    reply('200 OK', ['Content-Type: image/png'], Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255, 254])),
  ),
  '/download': sends(
    reply('200 OK', ['Content-Type: text/html', 'Content-Disposition: attachment; filename=x.html'], 'x'),
  ),
  '/cookies': html('<p id=c></p><script>c.textContent = document.cookie</script>'),
  '/sets-storage': html(`<script>localStorage.x = 1; document.cookie = 'left=behind'</script>`),
  '/storage': html('<p id=c></p><script>c.textContent = document.cookie + localStorage.length</script>'),
  '/refreshes': html('<meta http-equiv=refresh content="0;url=/here/landed">'),
  '/here/landed': html('<a href="next">landed</a>'),
  '/leaves': html(
    `<p>stays</p><script>location.href = 'http://localhost:' + location.port + '/here/landed'</script>`,
  ),
  '/check': ((socket, request) =>
    /cookie: passed=1/i.test(request.head)
      ? html('<p id=content>behind the check</p>')(socket, request)
      : html(
          `<title>Just a moment...</title><p>Checking your browser before you go on. Please verify that you are human.</p>
          <script>setTimeout(() => { document.cookie = 'passed=1'; location.reload() }, 1500)</script>`,
        )(socket, request)) satisfies RawHandler,
  '/who': ((socket, request) =>
    html(
      `<pre id=head>${request.head.replaceAll('<', '')}</pre><pre id=seen></pre><script>
        const worker = new Promise((resolve) => {
          new Worker('/who/worker.js').onmessage = ({ data }) => resolve(data);
        });
        const asked = ['fullVersionList', 'uaFullVersion', 'platform', 'model'];
        Promise.all([navigator.userAgentData.getHighEntropyValues(asked), worker]).then(([hints, worker]) => {
          seen.textContent = JSON.stringify({ worker, languages: navigator.languages, userAgent: navigator.userAgent,
            zone: Intl.DateTimeFormat().resolvedOptions().timeZone, screen: [screen.width, screen.height],
            outer: [outerWidth, outerHeight], hints, webdriver: navigator.webdriver,
            platform: navigator.platform, touch: navigator.maxTouchPoints });
        });
      </script>`,
    )(socket, request)) satisfies RawHandler,
  '/who/worker.js': sends(
    reply(
      '200 OK',
      ['Content-Type: text/javascript'],
      `navigator.userAgentData.getHighEntropyValues(['fullVersionList', 'platform', 'model']).then((hints) =>
      postMessage({ languages: navigator.languages, userAgent: navigator.userAgent, hints,
        zone: Intl.DateTimeFormat().resolvedOptions().timeZone }));`,
    ),
  ),
  '/driven': html(`<pre id=seen></pre><script>
    addEventListener('message', ({ data }) => {
      seen.innerHTML = '<b>' + navigator.webdriver + ' ' + data + '</b>';
    });
    const frame = document.createElement('iframe');
    frame.src = 'http://localhost:' + location.port + '/driven/frame';
    document.body.append(frame);
    </script>`),
  '/driven/frame': html(`<script>parent.postMessage(navigator.webdriver, '*')</script>`),
  '/watched':
    html(`<input id=q style="margin:400px 0 0 300px"><pre id=log></pre><div style="height:2000px"></div><script>
    const seen = { moves: 0, keys: 0, wheels: 0, pressed: 0 };
    const show = () => { log.textContent = JSON.stringify(seen) };
    addEventListener('mousemove', () => { seen.moves++; show() });
    addEventListener('wheel', () => { seen.wheels++; show() });
    q.addEventListener('input', () => { seen.keys++; show() });
    q.addEventListener('keydown', () => { seen.pressed++; show() });
  </script>`),
  '/assets': html(
    '<link rel=stylesheet href=/a.css><img src=/a.png><script src=/a.js></script><p>assets</p>',
  ),
  '/huge-dom': html(
    `<body><script>for (let i = 0; i < 200; i++) document.body.append('x'.repeat(10000))</script>`,
  ),
};

let origin: RawOrigin;
let fetcher: BrowserFetcher;
beforeAll(async () => {
  origin = await openRawOrigin(handlers);
  fetcher = await openBrowserFetcher({ clock, isPublicAddress, browser: { path: 'bundled' } });
});
afterAll(async () => {
  await fetcher.close();
  await origin.close();
});

const render = (spec: object) => browserSchema.parse(spec);
const get = (path: string, draft: RequestDraft = {}) =>
  fetcher.fetch(requestOf(origin.url + path, { timeouts: { taskMs: 20_000 }, ...draft }));
const bodyOf = async (path: string, draft?: RequestDraft) =>
  responseOf(await get(path, draft)).body.toString();

describe('a page in the browser', () => {
  test('is what its scripts make of it, with the head that the site sent', async () => {
    const response = responseOf(
      await get('/scripted', { render: render({ actions: [{ waitFor: '#list a' }] }) }),
    );
    expect(response.body.toString()).toContain('<a href="item/2">2</a>');
    expect(response.body.toString()).toMatch(/^<!DOCTYPE html><html><head><title>shop/);
    const { rawHeaders } = response;
    expect(rawHeaders).toEqual([
      ...['Content-Type', 'text/html; charset=utf-8', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2; Path=/'],
      ...['X-Name', 'value'],
    ]);
    expect(response.wireBytes).toBeGreaterThan(SCRIPTED.length);
  });

  test('is waited for until its network is idle, also in a tab whose last page was not', async () => {
    const last = '<a href="item/3">3</a>';
    expect(await bodyOf('/late', { render: render({ waitUntil: 'idle' }) })).toContain(last);
    expect(await bodyOf('/late', { render: render({ waitUntil: 'load' }) })).not.toContain(last);
    expect(await bodyOf('/late', { render: render({ waitUntil: 'idle' }) })).toContain(last);
  });

  test('that is a check which goes on by itself is waited for', async () => {
    expect(await bodyOf('/check', { render: render({ waitUntil: 'idle' }) })).toContain('behind the check');
  });

  test.each(['desktop', 'mobile'] as const)(
    'is the same in headers and for scripts as a browser that people use: %s',
    async (device) => {
      const text = await bodyOf('/who', {
        headers: { 'Accept-Language': 'de-CH,de;q=0.9' },
        poses: { device },
        render: render({
          waitUntil: 'idle',
          timezone: 'Europe/Zurich',
          actions: [{ waitFor: '#seen:not(:empty)' }],
        }),
      });
      const seen = JSON.parse(/<pre id="seen">(.*?)<\/pre>/.exec(text)![1]!);
      const head = /<pre id="head">([\s\S]*?)<\/pre>/.exec(text)![1]!;
      const headerOf = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1]?.trim();
      expect(text).not.toContain('Headless');
      expect(seen.languages).toEqual(['de-CH', 'de']);
      expect(headerOf('accept-language')).toBe('de-CH,de;q=0.9');
      expect(headerOf('user-agent')).toBe(seen.userAgent);
      const main = /Chrome\/(\d+)\.0\.0\.0/.exec(seen.userAgent)![1];
      expect(seen.hints.mobile).toBe(device === 'mobile');
      expect(seen.hints.platform).toBe(device === 'mobile' ? 'Android' : 'Linux');
      expect(seen.hints.fullVersionList).toContainEqual({ brand: 'Google Chrome', version: `${main}.0.0.0` });
      expect(seen.hints.brands).toContainEqual({ brand: 'Google Chrome', version: main });
      expect(seen.hints.uaFullVersion).toBe(`${main}.0.0.0`);
      expect(seen.zone).toBe('Europe/Zurich');
      expect(seen.webdriver).toBe(false);
      const { uaFullVersion: _, ...hints } = seen.hints;
      const { languages, userAgent, zone } = seen;
      expect(seen.worker).toEqual({ languages, userAgent, hints, zone });
      if (device === 'desktop') {
        expect(seen).toMatchObject({ screen: [1_920, 1_080], touch: 0 });
        // A window around the page, on the screen.
        expect(seen.outer[0]).toBe(1_280);
        expect(seen.outer[1]).toBeGreaterThan(800);
        expect(seen.outer[1]).toBeLessThan(1_080);
      } else {
        expect(seen.userAgent).toMatch(/\(Linux; Android 10; K\).* Mobile /);
        expect(seen).toMatchObject({ platform: 'Linux armv81', touch: 5 });
      }
    },
  );

  test('says that a program drives it, also in frames of other sites, unless the job chose another identity', async () => {
    const rendered = render({ waitUntil: 'idle', actions: [{ waitFor: '#seen b' }] });
    const drivenOf = async (more: object) =>
      /<b>(.*?)<\/b>/.exec(await bodyOf('/driven', { render: rendered, ...more }))?.[1];
    expect(await drivenOf({})).toBe('true true');
    expect(await drivenOf({ poses: { device: 'desktop' } })).toBe('false false');
    expect(await drivenOf({})).toBe('true true');
  });

  test('is used as a person would, where the job asks for it', async () => {
    const actions = [{ type: '#q', text: 'boät\ts' }, { scroll: 1 }];
    const logOf = async (behaviour: 'plain' | 'human') =>
      JSON.parse(
        /<pre id="log">(.*?)<\/pre>/.exec(
          await bodyOf('/watched', { render: render({ actions, behaviour }) }),
        )![1]!,
      );
    const plain = await logOf('plain');
    expect(plain).toMatchObject({ keys: 1, wheels: 0 });
    // Chromium itself may report one, where the pointer is when the page appears.
    expect(plain.moves).toBeLessThanOrEqual(1);
    const human = await logOf('human');
    expect(human.moves).toBeGreaterThan(5);
    expect(human.keys).toBeGreaterThanOrEqual(5);
    // Letters that the keyboard has no key for come as text, and so does what would leave the field.
    expect(human.pressed).toBeGreaterThanOrEqual(4);
    expect(human.wheels).toBeGreaterThan(2);
  });

  test('keeps its letters, whatever the coding and the length', async () => {
    expect(await bodyOf('/latin1')).toContain('<p>Grüße</p>');
    expect(await bodyOf('/long')).toContain('<p>Grüße – 你好 ü</p>'.repeat(8_000));
  });

  test('that is none gives its bytes', async () => {
    expect(JSON.parse(await bodyOf('/data.json'))).toEqual({ items: [1, 2, 3] });
    const picture = responseOf(await get('/picture'));
    expect([...picture.body]).toEqual([0x89, 0x50, 0x4e, 0x47, 0, 255, 254]);
    expect(picture.rendered).toBeUndefined();
  });

  test('is no download', async () => {
    expect(codeOf(await get('/download'))).toBe('media-type');
  });

  test('that grows over the limit fails', async () => {
    expect(codeOf(await get('/huge-dom', { bodyBytesMax: 1024 * 1024 }))).toBe('too-large');
  });
});

describe('who asks', () => {
  const headOf = (path: string) => origin.requests.findLast((request) => request.path === path)!.head;

  test('sends the headers of the request, to its own site only, and is the same to scripts', async () => {
    const headers = { 'user-agent': 'Seine/9', 'accept-language': 'de-CH,de;q=0.9', 'x-key': 'secret' };
    await bodyOf('/assets', { headers });
    for (const path of ['/assets', '/a.png']) {
      expect(headOf(path)).toMatch(/\r\nuser-agent: Seine\/9\r\n/i);
      expect(headOf(path)).toMatch(/\r\naccept-language: de-CH,de;q=0.9\r\n/i);
      expect(headOf(path)).toMatch(/\r\nx-key: secret\r\n/i);
    }
  });

  test('does not name itself headless when nobody says who it is', async () => {
    await bodyOf('/assets', { headers: {} });
    expect(headOf('/assets')).toMatch(/user-agent: Mozilla\/5.0 .* Chrome\/\d+/i);
    expect(headOf('/assets')).not.toMatch(/headless/i);
  });

  test('has the cookies of the request and no others', async () => {
    expect(await bodyOf('/cookies', { headers: { cookie: 'a=1; b=two' } })).toContain('a=1; b=two</p>');
    expect(headOf('/cookies')).toMatch(/\r\ncookie: a=1; b=two\r\n/i);
    expect(await bodyOf('/cookies')).toContain('<p id="c"></p>');
  });

  test('leaves nothing behind for the next', async () => {
    for (let count = 0; count < 3; count++) await bodyOf('/sets-storage');
    for (let count = 0; count < 3; count++) expect(await bodyOf('/storage')).toContain('<p id="c">0</p>');
  });

  test('can start logged in', async () => {
    const { hostname: domain, origin: site } = new URL(origin.url);
    const cookie = {
      name: 'who',
      value: 'me',
      domain,
      path: '/',
      expires: -1,
      httpOnly: false,
      secure: false,
      sameSite: 'Lax',
    };
    const loginState = JSON.stringify({
      cookies: [cookie],
      origins: [{ origin: site, localStorage: [{ name: 'k', value: 'v' }] }],
    });
    expect(await bodyOf('/storage', { loginState })).toContain('who=me1</p>');
    expect(codeOf(await get('/storage', { loginState: 'nonsense' }))).toBe('internal');
  });
});

describe('where a page leads by itself', () => {
  test('is followed on the same host, and links still lead where they did', async () => {
    const body = await bodyOf('/refreshes', { render: render({ actions: [{ waitFor: 'a' }] }) });
    expect(body).toContain(`<base href="${origin.url}/here/landed">`);
    expect(body).toContain('landed');
  });

  test('is not followed to another one', async () => {
    const before = origin.requests.length;
    expect(await bodyOf('/leaves', { render: render({ actions: [{ waitMs: 300 }] }) })).toContain('stays');
    expect(origin.requests.slice(before).map(({ path }) => path)).toEqual(['/leaves']);
  });
});

describe('what is done with a page', () => {
  test('scrolls to the end of what grows, types and clicks', async () => {
    expect(await bodyOf('/lazy', { render: render({ actions: [{ scroll: 'end' }] }) })).toContain(
      '<div>5</div>',
    );
    const actions = [
      { type: '#q', text: 'words' },
      { click: '#nowhere', optional: true },
      { click: 'button' },
      { waitFor: '#found' },
    ];
    expect(await bodyOf('/form', { render: render({ actions }) })).toContain('<p id="found">words</p>');
  });

  test('fails with a snapshot where it cannot be done', async () => {
    const result = await get('/form', {
      render: render({ actions: [{ waitFor: '#never' }] }),
      timeouts: { taskMs: 4_000 },
    });
    expect(codeOf(result)).toBe('render');
    if (result.kind !== 'failure') throw new Error('no failure');
    expect(result.detail).toBe('action 1 (waitFor) did not finish in time');
    expect(result.snapshot?.html.toString()).toContain('<button');
    expect(result.snapshot?.screenshot?.bytes.subarray(0, 2)).toEqual(Buffer.from([0xff, 0xd8]));
  });

  test('leaves out what is not to be loaded', async () => {
    const before = origin.requests.length;
    await bodyOf('/assets', {
      headers: { 'user-agent': 'other' },
      render: render({ block: ['images', 'styles'] }),
    });
    expect(origin.requests.slice(before).map(({ path }) => path)).toEqual(['/assets', '/a.js']);
  });

  test.each([
    ['png', [0x89, 0x50]],
    ['jpeg', [0xff, 0xd8]],
    ['webp', [0x52, 0x49]],
  ])('takes a picture as %s', async (format, start) => {
    const response = responseOf(await get('/lazy', { render: render({ screenshot: { format } }) }));
    const [shot] = response.rendered!.shots;
    expect(shot).toMatchObject({ kind: 'screenshot', type: `image/${format}` });
    expect([...shot!.bytes.subarray(0, 2)]).toEqual(start);
  });

  test('takes pictures of the page, the screen or an element, and prints', async () => {
    const sizeOf = async (screenshot: object) => {
      const response = responseOf(await get('/tall', { render: render({ screenshot }) }));
      const { bytes } = response.rendered!.shots[0]!;
      return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    };
    expect(await sizeOf({ of: 'screen' })).toEqual([1_280, 800]);
    expect(await sizeOf({ of: 'page' })).toEqual([1_280, 3_000]);
    expect(await sizeOf({ of: { element: 'div' } })).toEqual([1_280, 3_000]);
    const printed = responseOf(await get('/form', { render: render({ pdf: true }) }));
    expect(printed.rendered!.shots[0]!.bytes.toString('latin1', 0, 5)).toBe('%PDF-');
  });

  test('takes the same picture faster or smaller', async () => {
    const take = async (screenshot: object) => {
      const response = responseOf(await get('/lines', { render: render({ screenshot }) }));
      return Buffer.from(response.rendered!.shots[0]!.bytes);
    };
    const [usual, fast, small] = [
      await take({}),
      await take({ packing: 'fast' }),
      await take({ packing: 'small' }),
    ];
    expect(small.length).toBeLessThan(fast.length);
    expect(usual.length).toBe(fast.length);
    const [quick, slow] = [readDots(fast), readDots(small)];
    expect(slow.width).toBe(quick.width);
    expect(slow.dots.equals(quick.dots)).toBe(true);
    expect(new Set(slow.dots).size).toBeGreaterThan(2);
  });

  test('does not stay with the tab', async () => {
    const pictures: WeakRef<Uint8Array>[] = [];
    for (let page = 0; page < 5; page++) {
      const response = responseOf(await get(`/tall?${page}`, { render: render({ screenshot: true }) }));
      pictures.push(new WeakRef(response.rendered!.shots[0]!.bytes));
    }
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    await expect
      .poll(async () => {
        await sleep(10);
        collect();
        return pictures.filter((picture) => picture.deref()).length;
      })
      // The last may still be somewhere on its way.
      .toBeLessThanOrEqual(1);
  });

  test('keeps the JSON that scripts fetch', async () => {
    const response = responseOf(
      await get('/scripted', {
        render: render({
          capture: [{ name: 'items', url: '/data.json' }],
          actions: [{ waitFor: '#list a' }],
        }),
      }),
    );
    expect(response.rendered!.captured).toEqual({ items: [{ items: [1, 2, 3] }] });
  });
});
