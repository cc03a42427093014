import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseStreamSelector } from '../../../../src/worker/selectors/compile.ts';
import { asking, byTree, compileAsked, soup, streamed } from '../../../support/html/html-soup.ts';

const SHAPE = ['*', 'p', 'br', 'b', 'div', 'li', '.a', 'div > *', 'div *', 'svg *', 'body *', '* > p'];

/** Everything that these pages can show of their structure. */
function expectSame(html: string) {
  const asked = [
    ...SHAPE.map((css) => ({ css, all: true })),
    ...['id', 'class', 'a'].map((attr) => ({ css: '*', attr, all: true })),
    { css: '.a' },
  ];
  expect(streamed(html, asked)).toEqual(byTree(html, asked));
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
  'names whose keys are the same': '<ditlu><b>a</ditlu>b<ctylu><p>c</ctylu><dablu>d<title><b>e',
  'unknown elements': '<x-a>a<x-b>b</x-a>c</x-b><x-a/>d</x-c>',
  NUL: '<p id="a\u0000b">x\u0000y</p\u0000>z',
  empty: '',
  'only text': 'a &amp; b',
};

/** Selectors with a page each that tells right from nearly right. */
const SELECTED = [
  '<p id=1 class="a b" lang=EN type=X>x<b id=2 class=A lang=en-US data-x=v1>y</b></p><p id=3 class="ab" x1>z',
  '<div id=a><p id=b class="a\tc">x<p id=c class="c&#9;a" lang="e&#110;">y</div><b x\u0011 class=a id=d>z</b>',
  '<div id=1><div id=2><p id=3><b id=4 class=a>x</b></p></div><b id=5>y</b></div><b id=6 class="">z',
  '<x_ id=1>a</x_><x\u007f id=2>b</x\u007f><x[ id=3>c</x[><x{ id=4>d',
];
const SELECTORS = [
  '* ; P ; .a ; .A ; .a.b ; p.a, .b, p ; #b ; p#b ; [class] ; [CLASS] ; [class=""] ; [x1] ; .\\61 ; /* c */ p ; #\\31',
  '[lang=en] ; [lang=EN s] ; [lang|=en] ; [type=x] ; [type=x s] ; [class=AB i] ; [class^=a] ; [class$="b"] ; [class!=a]',
  "[class*='b'] ; [class~=a] ; [class^=''] ; [class~='a b'] ; [data-x=v1] ; [data-x=V1] ; div p ; div > p ; div>div b",
  'div > b ; div div > p > b.a ; p b, div > b ; div * b ; * > * ; p > * ; div div div ; template p ; x_ ; x\\{',
].flatMap((list) => list.split(' ; '));
const NEED_A_TREE =
  'p + b ; p ~ b ; p:first-child ; :not(p) ; p:has(b) ; > p ; p, b + i ; :contains(x) ; [constructor] ; [__proto__=x] ; *|p';

/** All that the parser treats in a way of its own, and some that it does not. */
const ELEMENTS = (
  'a address altglyph altglyphdef altglyphitem animatecolor animatemotion animatetransform annotation-xml area article ' +
  'aside base basefont blockquote body br button clippath col command datalist dd desc details div dl dt embed feblend ' +
  'fecolormatrix fecomponenttransfer fecomposite feconvolvematrix fediffuselighting fedisplacementmap fedistantlight ' +
  'fedropshadow feflood fefunca fefuncb fefuncg fefuncr fegaussianblur feimage femerge femergenode femorphology ' +
  'feoffset fepointlight fespecularlighting fespotlight fetile feturbulence fieldset figcaption figure footer ' +
  'foreignobject form frame g glyphref h1 h2 h3 h4 h5 h6 head header hr html iframe image img input isindex keygen li ' +
  'lineargradient link main math menu meta mi mn mo ms mtext nav noembed noframes noscript object ol optgroup option ' +
  'output p param path plaintext pre radialgradient rp rt ruby script section select source span style summary svg ' +
  'table tbody td template textarea textpath tfoot th thead title tr track ul video wbr x-y xmp'
).split(' ');

describe('the same as with a tree', () => {
  test.each(Object.entries(SNIPPETS))('%s', (_, html) => {
    expectSame(html);
    for (let end = 0; end < html.length; end++) expectSame(html.slice(0, end));
  });

  test.each(SELECTORS)('selector %s', (css) => {
    for (const html of SELECTED) {
      const asked = [{ css }, { css, all: true }, { css, attr: 'id' }, { css, attr: 'id', all: true }];
      expect(streamed(html, asked)).toEqual(byTree(html, asked));
    }
  });

  test.each(['', '<svg>', '<math>', '<svg><desc>'])('every pair of elements inside %s', (around) => {
    const asked = [
      { css: '*', all: true },
      { css: 'p', all: true },
      { css: '*', attr: 'id', all: true },
    ];
    const read = compileAsked(asked);
    for (const outer of ELEMENTS) {
      for (const inner of ELEMENTS) {
        const html = `${around}<${outer} id=1>a<${inner} id=2>b</${outer}>c<p>d</${inner}>e`;
        const found = read(html);
        const expected = byTree(html, asked);
        if (!isDeepStrictEqual(found, expected)) expect({ html, found }).toEqual({ html, found: expected });
      }
    }
  });
});

test.each(NEED_A_TREE.split(' ; '))('%s needs a tree', (css) => expect(parseStreamSelector(css)).toBeNull());

describe('limits', () => {
  test('a page as deep as it is long, and end tags of what was never open', () => {
    const deep = `${'<x-a>'.repeat(200_000)}z${'</x-b>'.repeat(200_000)}`;
    expect(streamed(deep, [{ css: 'x-a' }, { css: 'x-b' }, { css: 'x-a x-a > x-a', attr: 'id' }])).toEqual([
      'z',
      null,
      null,
    ]);
  });

  test('matches inside each other that repeat too much text', () => {
    const html = `${'<b>'.repeat(1_000)}${'x'.repeat(100_000)}`;
    expect(() => streamed(html, [{ css: 'b', all: true }])).toThrow('exceed');
    expect(streamed('<b>after', [{ css: 'b' }])).toEqual(['after']);
  });

  test('more steps than one pass can hold take more passes', () => {
    const asked = Array.from({ length: 50 }, (_, at) => ({ css: `div > p .c${at % 7}, ul .c${at % 5}` }));
    const html =
      '<div><p><b class=c0>0</b><b class=c1>1</b><b class=c3>3</b><b class=c4>4</b></div><ul><p class=c2>2';
    expect(streamed(html, asked)).toEqual(byTree(html, asked));
    expect(parseStreamSelector('a '.repeat(32))).not.toBeNull();
    expect(parseStreamSelector('a '.repeat(33))).toBeNull();
  });
});

/** 200,000 were run when this was written. */
const RUNS = 3_000;

describe('any soup', () => {
  test('and any selectors: the same as with a tree', () => {
    fc.assert(
      fc.property(soup, fc.array(asking, { minLength: 1, maxLength: 4 }), (html, asked) => {
        expect(streamed(html, asked)).toEqual(byTree(html, asked));
      }),
      { numRuns: RUNS },
    );
  });

  test('a page before it leaves no trace', () => {
    fc.assert(
      fc.property(soup, soup, fc.array(asking, { minLength: 1, maxLength: 3 }), (before, html, asked) => {
        const read = compileAsked(asked);
        read(before);
        expect(read(html)).toEqual(byTree(html, asked));
      }),
      { numRuns: RUNS / 2 },
    );
  });

  test('every element has its place', () => {
    fc.assert(
      fc.property(soup, (html) => expectSame(html)),
      { numRuns: RUNS / 3 },
    );
  });
});
