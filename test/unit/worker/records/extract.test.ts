import { describe, expect, test } from 'vitest';
import { Page } from '../../../../src/worker/page/page.ts';
import { fieldsOf, inputOf, pageOf } from '../../../support/html/html-page.ts';

const SHOP = `<!DOCTYPE html>
<html lang=en><head><meta charset="utf-8"><title>Oak chair &amp; table | Corner Shop</title>
<meta name="description" content="Chairs, &quot;tables&quot; &#x2014; more"><link rel="Stylesheet" href=/s.css>
<script type="application/ld+json">{"@type":"Product","name":"<b>Oak</b> &amp; ash"}</script>
<style>.price{color:red}</style><script>document.write('<h1 class="price">no</h1>')</script></head>
<body class=product><!-- <h1>old</h1> --><header><nav><ul>
<li><a href="/">Home</a><li class="on"><a HREF='/chairs?a=1&amp;b=2'>Chairs</a><li><a href=/sale>Sale</a></ul></nav></header>
<main><h1 itemprop="name">Oak chair
   <small>no. 5</small></h1><p>By <a rel=author href="/m/1">Möbel &amp; Söhne</a>
<div class="buy box"><span class="price old">€&nbsp;20.00</span> <span class="price" data-cents="1250">€&nbsp;12.50</span>
<form action=/buy><select name=n><option value=1>One<option value=2 selected>Two</select><button disabled>Buy</button></form>
<img class="main" src="/i/1.jpg" alt="a > b"><img src=/i/2.jpg><svg viewBox="0 0 1 1"><title>Icon</title><path d="M0"/></svg></div>
<table class=specs><tr><th>Wood<td>Oak<tr><th>Weight<td>5&thinsp;kg</table>
<script>var stock = "<p>3 left</p>";</script><template><p class="price">template</p></template>
<p>First line<br>second line<p>Third</main><footer>&copy 2024 Corner &lt;Shop&gt;</footer></body></html>`;

const ARTICLE = `<html><head><title>News</title><base href="/n/"></head><body>
<article id=story class='story lead'><h2>Rain &mdash; again</h2><p class=by>By A. Writer, <time datetime="2024-05-01T10:00Z">1 May</time>
<p>It rained.<p>It <em>poured</em>, said <q cite=/x>nobody</q> &hellip;<blockquote><p>Quote<p>More</blockquote>
<figure><img src="r.png" srcset="r.png 1x, r2.png 2x"><figcaption>Rain</figure>
<noscript><img src="t.gif"></noscript><iframe src="/ad"><p>no frames</p></iframe></article>
<ol class=comments><li data-id=1><b>ann</b>: 1 < 2 && 3 > 2<li data-id=2><b>bob</b>: <i>sure</b>?<ol><li data-id=3>reply</ol></ol>
<dl><dt>Tag<dd>weather<dd>rain<dt>Place<dd>here</dl><textarea name=c>&lt;write&gt; <b>here</textarea></body></html>`;

const BROKEN = `<div class=row><div class=cell>a</div></div></div><div class="row"><div class='cell>b</div>
<div class="cell" title='it's'>c</div></p></div><a href="/x">one<a href="/y">two</a></a><p>text<table><td>cell<p>in</table>after
<input type=hidden name=token value=abc/><center><font color=red>old<p>style</font></center></body></html>trailing<p class=row>end <`;

const SELECTORS = [
  'title ; h1 ; h1 small ; .price ; .buy .price ; .buy > .price[data-cents] ; span.price.old ; main p ; main > p ; body',
  'meta[name=description] ; link[rel=stylesheet] ; nav li > a ; nav li.on a ; a[rel=author] ; select option ; [selected]',
  'img.main ; img[src$=".jpg"] ; table.specs td ; tr > th ; script ; script[type="application/ld+json"] ; style ; footer',
  '#story ; article p ; time[datetime^="2024"] ; .comments > li ; .comments li ; li[data-id] b ; dl dd ; textarea ; iframe',
  'noscript img ; figure figcaption ; .row ; .row .cell ; .row > .cell ; a ; td p ; input[type=hidden] ; center p ; html ; *',
  'h1, h2, title ; p.by, .price ; [itemprop] ; svg ; svg title ; svg path ; template p ; .none ; p q[cite], p em ; option',
].flatMap((list) => list.split(' ; '));

describe('pages as sites have them', () => {
  test.each(Object.entries({ SHOP, ARTICLE, BROKEN }))('%s: with and without a tree', async (_, html) => {
    const page = pageOf(html);
    let found = 0;
    for (const css of SELECTORS) {
      for (const more of [{}, ...['href', 'class', 'src', 'value'].map((attr) => ({ attr }))]) {
        for (const all of [false, true]) {
          const streamed = (await fieldsOf({ it: { css, all, ...more } }))(page);
          const byTree = (await fieldsOf({ it: { css: `:is(${css})`, all, ...more } }))(page);
          expect({ css, ...more, all, streamed }).toEqual({ css, ...more, all, streamed: byTree });
          if (streamed !== null) found++;
        }
      }
    }
    expect(found).toBeGreaterThan(25);
  });
});

describe('fields', () => {
  test('takes text, attributes and lists', async () => {
    const extract = await fieldsOf({
      name: 'h1',
      title: 'title',
      prices: { css: '.price', all: true },
      cents: '[data-cents]@data-cents',
      links: { css: 'nav a', attr: 'HREF', all: true },
      description: 'meta[name="description"]@content',
      none: '.none',
      noneAll: { css: '.none', all: true },
      second: { css: 'img:nth-of-type(2)', attr: 'src', all: false },
    });
    expect(extract(pageOf(SHOP))).toEqual({
      name: 'Oak chair no. 5',
      title: 'Oak chair & table | Corner Shop',
      prices: ['€ 20.00', '€ 12.50'],
      cents: '1250',
      links: ['/', '/chairs?a=1&b=2', '/sale'],
      description: 'Chairs, "tables" — more',
      none: null,
      noneAll: [],
      second: '/i/2.jpg',
    });
  });

  test.each(['main', ':is(main)'])('text of %s is without scripts, styles and comments', async (css) => {
    const html =
      '<main>a<script>b</script><style>c</style><!-- d --> <b>e</b><svg><script><i>f</i></script>g</svg></main>';
    expect((await fieldsOf({ text: css }))(pageOf(html))).toEqual({ text: 'a eg' });
  });

  test.each(['script', ':is(script)'])('a script that is asked for (%s) has its text', async (css) => {
    const extract = await fieldsOf({ data: css });
    expect(extract(pageOf('<script type=a>{"a": "<b>&amp;"}</script>'))).toEqual({
      data: '{"a": "<b>&amp;"}',
    });
  });

  test('builds no tree for plain selectors', async () => {
    class TreelessPage extends Page {
      override get document(): never {
        throw new Error('a tree was built');
      }
    }
    const page = new TreelessPage(inputOf(SHOP));
    const plain = await fieldsOf({
      a: 'main > h1',
      price: { css: '.buy .price, h2', type: 'money', required: true },
      link: { css: 'nav a', attr: 'href', type: 'url', all: true },
      description: { meta: 'Description' },
      product: { fields: { name: { jsonLd: 'Product.name' }, data: { css: 'script', type: 'json' } } },
      old: { regex: '<!-- <h1>(.*?)</h1>' },
    });
    expect(plain(page)).toMatchObject({
      price: { amount: 20, currency: 'EUR' },
      link: ['https://shop.example/', 'https://shop.example/chairs?a=1&b=2', 'https://shop.example/sale'],
      description: 'Chairs, "tables" — more',
      product: { name: '<b>Oak</b> &amp; ash', data: { '@type': 'Product' } },
      old: 'old',
    });
    const sibling = await fieldsOf({ a: 'h1', b: 'h1 + p' });
    expect(() => sibling(page)).toThrow('a tree was built');
  });

  test('keeps fields in their order, whichever way they are read', async () => {
    const extract = await fieldsOf({ z: 'h1 + p', a: 'h1', m: 'p:first-of-type', b: 'title' });
    expect(Object.keys(extract(pageOf(SHOP))!)).toEqual(['z', 'a', 'm', 'b']);
  });

  test('gives nothing when no field found anything', async () => {
    expect(
      (await fieldsOf({ a: '.none', b: { css: '.none', all: true }, c: 'br' }))(pageOf(SHOP)),
    ).toBeNull();
  });

  test('an attribute that the first match lacks is null, later matches do not stand in', async () => {
    const page = pageOf('<a>x</a><a href=/y>y</a>');
    expect((await fieldsOf({ text: 'a', href: 'a@href' }))(page)).toEqual({ text: 'x', href: null });
    expect((await fieldsOf({ hrefs: { css: 'a', attr: 'href', all: true } }))(page)).toEqual({
      hrefs: ['/y'],
    });
  });

  test.each(['constructor', '__proto__'])('%s is an attribute like others, or none', async (attr) => {
    const page = pageOf('<p>x');
    expect((await fieldsOf({ text: 'p', it: { css: 'p', attr, all: false } }))(page)).toEqual({
      text: 'x',
      it: null,
    });
  });

  test('names the field whose selector is wrong', async () => {
    await expect(fieldsOf({ good: 'h1', price: 'p[' })).rejects.toThrow(
      "field 'price' of route 'product' is not valid CSS: p[",
    );
    await expect(fieldsOf({ price: 'p:no-such' })).rejects.toThrow("field 'price'");
  });
});
