import { describe, expect, test } from 'vitest';
import { needsScript, SHELL_CHARS_MAX } from '../../../../src/core/blocking/needs-script.ts';
import { cpuNow } from '../../../support/cpu-time.ts';

const BUNDLE = '<script src="/static/main.4f2a.js" defer></script>';
const page = (body: string, head = '') =>
  `<!doctype html><html><head><title>A shop of many things</title>${head}</head><body>${body}</body></html>`;
const words = (count: number) => 'word '.repeat(count);

/** As real sites serve them, names changed. */
const SHELLS: Record<string, string> = {
  'Create React App': page(
    `<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>${BUNDLE}`,
  ),
  Vite: page('<div id="app"></div>', '<script type="module" crossorigin src="/assets/index-a1.js"></script>'),
  'Vue with a notice': page(
    `<noscript><strong>We're sorry but this doesn't work properly without JavaScript enabled.</strong></noscript><div id=app></div>${BUNDLE}`,
  ),
  Angular: page(`<app-root></app-root>${BUNDLE}`, '<base href="/"><style>body{margin:0}</style>'),
  'Angular with a spinner': page(`<app-root><div class="spinner"></div>Loading…</app-root>${BUNDLE}`),
  'Next without content': page(
    `<div id="__next"></div><script id="__NEXT_DATA__" type="application/json">{"props":{}}</script>${BUNDLE}`,
  ),
  'nothing but a script': page(BUNDLE),
  'an inline loader': page('<div id="x"></div><script>fetch("/api").then(draw)</script>'),
  'a frame of menu and imprint around an empty place': page(
    `<header>${'<a href="/x">Menu</a> '.repeat(8)}</header><div id="root"><!-- here --></div><footer>${words(30)}</footer>${BUNDLE}`,
  ),
  'capital letters': '<HTML><BODY><DIV ID="ROOT"></DIV><SCRIPT SRC="A.JS"></SCRIPT></BODY></HTML>',
};

const PAGES: Record<string, string> = {
  'an article': page(`<h1>News</h1><p>${words(200)}</p>${BUNDLE}`),
  'a rendered application': page(`<div id="root"><h1>Lamp</h1><p>${words(60)}</p></div>${BUNDLE}`),
  'a short page without scripts': page('<p>Nothing here.</p>'),
  'a short page with structured data only': page(
    '<p>Closed.</p>',
    '<script type="application/ld+json">{"@type":"Thing"}</script>',
  ),
  'a short page with a counter script': page(
    `<h1>Thank you</h1><p>We got your message.</p><a href="/">Home</a>${BUNDLE}`,
  ),
  'a gallery': page('<a href="/p"><img src="/p.jpg"></a>'.repeat(20) + BUNDLE),
  'a page with a notice and its content': page(
    `<noscript>Enable JavaScript for the map.</noscript><p>${words(200)}</p>${BUNDLE}`,
  ),
  'an empty body': '',
  'plain text': 'hello',
};

describe('needsScript', () => {
  test.each(Object.keys(SHELLS))('%s needs scripts', (name) => {
    expect(needsScript(SHELLS[name]!)).toEqual(expect.any(String));
  });

  test.each(Object.keys(PAGES))('%s does not', (name) => {
    expect(needsScript(PAGES[name]!)).toBeNull();
  });

  test('a page on which no field was found is judged more strictly', () => {
    const frame = page(
      `<header>${'<a href="/">Menu</a>'.repeat(6)}</header><main></main><p>${words(100)}</p>${BUNDLE}`,
    );
    expect(needsScript(frame)).toBeNull();
    expect(needsScript(frame, { isEmpty: true })).toMatch(/no field/);
    expect(needsScript(PAGES['an article']!.replace(words(200), words(500)), { isEmpty: true })).toBeNull();
    expect(needsScript(PAGES['a short page without scripts']!, { isEmpty: true })).toBeNull();
  });

  test.each([
    ['open tags', '<div '],
    ['open scripts', '<script>'],
    ['open comments', '<!--'],
    ['less-than signs', '<'],
    ['roots', '<div id="root">'],
    ['notices', '<noscript>java'],
    ['spaces', ' '],
  ])('takes linear time on a page of %s', (_, piece) => {
    const whole = piece.repeat(Math.ceil(SHELL_CHARS_MAX / piece.length));
    const started = cpuNow();
    needsScript(whole, { isEmpty: true });
    // 10 ms when measured; the square of half a million takes minutes.
    expect(cpuNow() - started).toBeLessThan(2_000);
  });
});
