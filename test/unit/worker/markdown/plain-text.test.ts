import { expect, test } from 'vitest';
import { plainText } from '../../../../src/worker/markdown/plain-text.ts';
import { Page } from '../../../../src/worker/page/page.ts';

const textOf = (html: string) => {
  const page = new Page({
    ...{ url: 'https://a.example/', status: 200, headers: [], body: Buffer.from(html) },
    ...{ contentType: 'text/html', contentTypeHeader: 'text/html; charset=utf-8', route: null, meta: null },
  });
  return plainText(page.one('body')!);
};

test.each([
  ['<h1>Hello</h1><p>Some   <b>bold</b>\n words.</p>', 'Hello\nSome bold words.'],
  ['<ul><li>one<li>two</ul>after', 'one\ntwo\nafter'],
  ['<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>', 'a b\nc d'],
  ['first<br>second<br><br>third', 'first\nsecond\nthird'],
  ['<script>x()</script><style>a{}</style><noscript>no</noscript><p>shown</p>', 'shown'],
  ['a<span>b</span>c', 'abc'],
])('%s', (html, text) => {
  expect(textOf(`<body>${html}</body>`)).toBe(text);
});

test('a deep page is read as well', () => {
  expect(textOf(`<body>${'<div>'.repeat(50_000)}deep`)).toBe('deep');
});
