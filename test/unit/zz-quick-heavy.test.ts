import { selectAll, selectOne } from 'css-select';
import type { Document, Element } from 'domhandler';
import fc from 'fast-check';
import { parseDocument } from 'htmlparser2';
import { describe, expect, test } from 'vitest';
import { textOfElement } from '../../src/worker/page.ts';
import { compileQuick, parseQuick, type QuickValue } from '../../src/worker/quick-select.ts';

interface Asked {
  css: string;
  attr?: string;
  all?: boolean;
}

function quick(html: string, asked: Asked[]): QuickValue[] {
  const fields = asked.map(({ css, attr, all = false }) => {
    const selector = parseQuick(css);
    if (selector === null) throw new Error(`not quick: ${css}`);
    return { selector, attr, all };
  });
  return compileQuick(fields)(html);
}

/** The same asked of a tree. */
function byTree(html: string, asked: Asked[]): QuickValue[] {
  const document = parseDocument(html);
  return asked.map(({ css, attr, all }) => {
    const read = (element: Element) =>
      attr === undefined ? textOfElement(element) : (element.attribs[attr] ?? null);
    if (all)
      return selectAll<Document | Element, Element>(css, document)
        .map(read)
        .filter((value) => value !== null);
    const element = selectOne<Document | Element, Element>(css, document);
    return element ? read(element) : null;
  });
}

const SHAPE = ['*', 'p', 'br', 'b', 'div', 'li', '.a', 'div > *', 'div *', 'svg *', 'body *', '* > p'];

/** Everything that these pages can show of their structure. */
function expectSame(html: string, more: Asked[] = []) {
  const asked = [
    ...SHAPE.map((css) => ({ css, all: true })),
    ...['id', 'class', 'a'].map((attr) => ({ css: '*', attr, all: true })),
    { css: '.a' },
    ...more,
  ];
  expect(quick(html, asked)).toEqual(byTree(html, asked));
}

const SNIPPETS: Record<string, string> = {
  'text and nesting': '<div>one <b>two <i>three</i></b> four</div> five',
  'nested matches of one selector': '<div>a<div>b<div class=a>c</div>d</div>e</div>',
  'white space': '<div>\n  a \u00a0\t b\r\n <b> c </b></div>',
  'implied ends': '<ul><li>a<li>b<ul><li>c</ul><li>d</ul><p>e<div>f</div><p>g<h1>h<h2>i',
  tables: '<table><thead><tr><th>a<th>b<tbody><tr><td>c<td>d<tr><td>e<tfoot><tr><td>f</table>',
  forms:
    '<form id=1>a<form id=2>b<input id=3>c</form>d</form><form id=4>e<select><option>f<optgroup><option>g',
  'forms in each other, closed once': '<form id=1><div><form id=2><p>x</form></div>y',
  'definition lists and ruby': '<dl><dt>a<dd>b<dd>c<dt>d</dl><ruby>x<rt>y<rp>z</ruby>',
  'head and body': '<head><title>t</title><script>s</script><body id=b>x</body></html> y',
  'void elements': '<div>a<br>b<img id=i/>c<hr>d<wbr></wbr>e<input class=a>f</div>',
  'image is img': '<image id=1>a</image><svg><image id=2>b</image></svg><div>c</div>',
  'ends without a beginning': '<div>a</p>b</br>c</b>d</i></div></div>e</p>',
  'ends that close several': '<div><b><i><u>x</b>y</div>z',
  'end tag with attributes': '<div>a</div id="x > y">b</div',
  'self-closing means nothing in HTML': '<div/>a<p/>b<b/>c',
  'self-closing in SVG': '<svg><g/>a<g id=1 / >b<title/>c</title><path/>d</svg><svg/>e<math/>f',
  'SVG has its capitals': '<svg><foreignobject><p>a<div>b</foreignobject>c<lineargradient>d</svg>',
  'SVG and text-only elements':
    '<svg><script>a<b>b</b></script><style>c<i>d</i></style><title><b>e</title></svg>',
  'CDATA in SVG, MathML and HTML':
    '<svg>a<![CDATA[<b>&amp;</b>]]>b</svg><div><![CDATA[c > d]]>e</div><math><![CDATA[f]]>',
  'CDATA in an integration point': '<svg><desc><![CDATA[a]]>b</desc></svg><![CDATA[ x',
  script: '<div>a<script>b <i>c</i> &amp; </div></script>d<style>e</style>f</div>',
  'script, style and title by themselves':
    '<script class=a>x &amp; <y</script><style class=a>z</style><title class=a>&lt;b></title>',
  'script without an end': '<div>a<script>b</div>c</scrip',
  'textarea and title have references':
    '<textarea>&lt;b>&amp;amp;<p></textarea><title>a &eacute; <b></titlex></title>b',
  'reference after what looks like an end tag': '<title><&amp;</&amp;</t&amp;</title&amp;&amp;</title>',
  'raw elements':
    '<iframe><b>&amp;</b></iframe><xmp><p>&lt;</xmp><noembed><p></noembed><noframes><b></noframes>x',
  plaintext: '<div>a<plaintext><b>&amp;</b></plaintext></div>',
  'text-only elements that claim to be empty': '<title/>a<b></title><script/>c<p></script>d',
  'noscript is no raw element': '<noscript><p class=a>x</p></noscript>',
  comments: '<div>a<!-- <b>x</b> -->b<!-->c<!--->d<!-- e --!>f<!-- -- > --->g</div><!-- <p>',
  'declarations and bogus comments':
    '<!doctype html><!x <b>>a<?php echo "<b>" ?>b</ c>d</3>e</>f<!>g<![x]>h<!-x>i<!doct>j',
  'lone <': '<div>a < b <3 <= c << d <',
  'end of the page after </': '<div>a</',
  'end of the page in an end tag': '<div>a</b c',
  'end of the page in a name': '<div>a<sPa',
  'end of the page in a name that begins like a text-only one': '<div>a<sCr',
  'end of the page in a name in SVG': '<svg>a<scr',
  'end of the page after a slash': '<div>a<b / ',
  'end of the page in a value': '<div>a<b c="d>e</b>',
  'end of the page in a reference': '<div>a &am',
  'end of the page in a reference that needs no semicolon': '<div>a &copy',
  'end of the page in a numeric reference': '<div>a &#x41',
  'upper case': '<DIV ID=X CLASS="A a">a<BR>b<P>c</DiV>',
  'attributes of all kinds': '<p a=1 b=\'2\' c="3" d e= f =g "h" i="j"k=l/m=n/ id=x/>y',
  'first attribute of a name wins': '<p id=1 ID=2 iD=3>',
  'references in attributes':
    '<p id="&lt;&copy&copy=1&copyx&notit;&#65;&#x42&amp;amp" class="&#97;" a=&amp>x',
  'quotes that mislead': '<p a="x>y" b=\'"\' c=">">x<p id=a"b>y<p "a>z<p =">w<p a=\'"\'>v<p a= ">" id=1>',
  'odd characters in names':
    '<b\u0000c id=1>x</b\u0000c><h\u0011>y<dıv>z<lin\u212a>w<div \u212a=1 \u0130=2 a=3>',
  'control characters that pass for < and /':
    '<title>a\u001c/title>b<script>\u001c\u000fscript>c<script>x\u001c/script>d',
  'templates are not looked into': '<div>a<template class=a><p class=a>b<div>c</div></template>d</div><p>e',
  'names of objects': '<p constructor=1 __proto__=2 a=3>x',
  'unknown elements': '<x-a>a<x-b>b</x-a>c</x-b><x-a/>d</x-c>',
  NUL: '<p id="a\u0000b">x\u0000y</p\u0000>z',
  empty: '',
  'only text': 'a &amp; b',
};

describe('compileQuick gives what a tree gives', () => {
  test.each(Object.entries(SNIPPETS))('%s', (_, html) => {
    expectSame(html);
    for (let end = 0; end < html.length; end++) expectSame(html.slice(0, end));
  });
});

const SOUP_TAGS =
  'p div li ul a b h1 h2 table thead tbody tfoot tr td th select option optgroup button textarea title script style ' +
  'svg math mi desc foreignObject linearGradient form input br img image hr dl dt dd ruby rt rp template body head ' +
  'html plaintext iframe xmp noembed noframes span x-y H1 DIV sCript TITLE annotation-xml link section datalist';
const soupTag = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('p', 'div', 'b', 'a', 'li', 'svg', 'title', 'form') },
  { weight: 5, arbitrary: fc.constantFrom(...SOUP_TAGS.split(' ')) },
);
const attributeName = fc.constantFrom(
  'a',
  'b',
  'id',
  'class',
  'CLASS',
  'Id',
  'lang',
  'data-x',
  'a:b',
  '\u212a',
  '=',
  '"',
);
const attributeValue = fc.constantFrom(
  ...[
    '',
    'a',
    'b',
    'A',
    'a b',
    'b a',
    'a-b',
    'ab',
    'x>y',
    '"',
    "'",
    '&amp;',
    '&#97;',
    '&copy',
    '&copy=',
    'a/',
    ' a\t',
  ],
  ...['<b>', '&', '&#x61', 'a\u00a0b', '\u0000', '&ampx', '=a'],
);
const attribute = fc
  .tuple(
    attributeName,
    fc.constantFrom('=', ' = ', '', '=\n'),
    fc.constantFrom('"', "'", ''),
    attributeValue,
    fc.constantFrom(' ', '', '/', '\n'),
  )
  .map(
    ([name, equals, quote, value, after]) =>
      (equals === '' ? name : `${name}${equals}${quote}${value}${quote}`) + after,
  );
const startTag = fc
  .tuple(
    soupTag,
    fc.array(attribute, { maxLength: 3 }),
    fc.constantFrom('>', '>', '>', '>', '/>', ' / >', ' >', '', '">'),
  )
  .map(
    ([name, attributes, end]) => `<${name}${attributes.length > 0 ? ' ' : ''}${attributes.join('')}${end}`,
  );
const endTag = fc
  .tuple(soupTag, fc.constantFrom('>', '>', '>', '>', ' >', ' a=">', '/>', ''))
  .map(([name, end]) => `</${name}${end}`);
const oddity = fc.constantFrom(
  ...[
    '<',
    '</',
    '<!',
    '<!--',
    '-->',
    '--!>',
    '<!-->',
    '<!--->',
    '<!---',
    '<![CDATA[',
    ']]>',
    '<?',
    '?>',
    '<!doctype html>',
  ],
  ...[
    '<!d',
    '</ ',
    '</>',
    '<>',
    '< b>',
    '"',
    "'",
    '>',
    '/',
    '=',
    '&',
    '&amp',
    '&amp;',
    '&lt;',
    '&notit;',
    '&#65',
    '&#x',
    '&#0;',
  ],
  ...[
    '\u0000',
    '\u001c/title>',
    '<\u000fscript>',
    '</scr',
    '</title',
    '<&amp;',
    ' ',
    '\n',
    '\u00a0',
    '-',
    ']',
    '!',
    '<tit',
    '<p',
  ],
);
const text = fc.constantFrom('x', ' y ', 'z\n z', 'é', '&eacute', 'a', '1 < 2', 'w');
const soup = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: startTag },
      { weight: 4, arbitrary: endTag },
      { weight: 3, arbitrary: text },
      { weight: 2, arbitrary: oddity },
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''));

const selectorValue = fc.constantFrom('a', 'b', 'A', 'ab', 'a b', '', 'a-b', 'a/', '©', '<b>');
const simple = fc.oneof(
  fc.constantFrom(
    '.a',
    '.b',
    '.A',
    '#a',
    '#b',
    '#ab',
    '[a]',
    '[b]',
    '[data-x]',
    '[CLASS]',
    '[lang=A]',
    '[a=a]',
    '[a|=a i]',
  ),
  fc
    .tuple(
      fc.constantFrom('a', 'b', 'class', 'id', 'lang', 'data-x'),
      fc.constantFrom('=', '~=', '^=', '$=', '*=', '|=', '!='),
      selectorValue,
      fc.constantFrom('', ' i', ' s'),
    )
    .map(([name, operator, value, flag]) => `[${name}${operator}"${value}"${flag}]`),
);
const selectorTag = fc.constantFrom('*', ...SOUP_TAGS.split(' '), 'foreignobject', 'bcd');
const compound = fc.oneof(
  selectorTag,
  fc.array(simple, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('')),
  fc.tuple(selectorTag, simple).map((parts) => parts.join('')),
);
const complex = fc
  .array(fc.tuple(compound, fc.constantFrom(' ', ' > ', '>')), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.map(([part, join], index) => (index === 0 ? part : join + part)).join(''));
const selector = fc.array(complex, { minLength: 1, maxLength: 2 }).map((list) => list.join(', '));
const asking: fc.Arbitrary<Asked> = fc.record(
  { css: selector, attr: fc.constantFrom('a', 'id', 'class', 'data-x', 'k'), all: fc.boolean() },
  { requiredKeys: ['css'] },
);

const RUNS = 210_000;

describe('properties', () => {
  test('any soup and any selectors: the same as a tree', () => {
    fc.assert(
      fc.property(soup, fc.array(asking, { minLength: 1, maxLength: 4 }), (html, asked) => {
        expect(quick(html, asked)).toEqual(byTree(html, asked));
      }),
      { numRuns: RUNS },
    );
  });

  test('any soup: every element has its place', () => {
    fc.assert(
      fc.property(soup, (html) => expectSame(html)),
      { numRuns: RUNS / 3 },
    );
  });
});
