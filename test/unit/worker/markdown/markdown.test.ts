import type { Element } from 'domhandler';
import fc from 'fast-check';
import { parseDocument } from 'htmlparser2';
import { describe, expect, test } from 'vitest';
import { toMarkdown } from '../../../../src/worker/markdown/markdown.ts';

const BASE = 'https://site.example/docs/page.html?a=1';
const markdown = (html: string) => toMarkdown(parseDocument(html), BASE);
const lines = (...all: string[]) => all.join('\n');

describe('blocks', () => {
  test.each([
    ['paragraphs', '<p>one\n  two</p><div>three</div>four', lines('one two', '', 'three', '', 'four')],
    [
      'headings',
      '<h1>A</h1><h2>B <b>c</b></h2><h6>D<br>e</h6><h3> </h3>',
      lines('# A', '', '## B c', '', '###### D e'),
    ],
    ['a heading of several blocks', '<h2><div>a</div><div>b</div></h2>', '## a b'],
    [
      'a heading that opens something',
      '<h3><button>Why?</button><button>Copy</button></h3><button>Buy</button>',
      '### Why?',
    ],
    ['a heading that ends in number signs', '<h2>a ##</h2><h2>C#</h2>', lines('## a \\##', '', '## C#')],
    ['a rule between blocks', '<hr>a<hr><hr>b<hr>', lines('a', '', '---', '', 'b')],
    ['a rule above a list', 'a<hr><ul><li>b<li>c</ul>', lines('a', '', '---', '', '- b', '- c')],
    ['a rule above a quote', 'a<hr><blockquote>b</blockquote>', lines('a', '', '---', '', '> b')],
    [
      'a rule in an item, and one at the end of it',
      '<ul><li>a<hr>b<hr><li>c</ul>',
      lines('- a', '', '  ---', '', '  b', '- c'),
    ],
    ['line breaks', 'a<br>b<br/>', lines('a  ', 'b')],
    ['two line breaks', 'a<br><br>b', lines('a', '', 'b')],
    ['a quote', '<blockquote><p>a<p>b</blockquote>c', lines('> a', '>', '> b', '', 'c')],
    [
      'a quote in a quote',
      '<blockquote>a<blockquote>b</blockquote></blockquote>',
      lines('> a', '>', '> > b'),
    ],
    [
      'a definition list',
      '<dl><dt>A<dd>one<dd>two<dt>B<dd><p>x<p>y</dl>',
      lines('A', ': one', ': two', '', 'B', ': x', '', '  y'),
    ],
    [
      'a figure',
      '<figure><img src=/a.png alt=A><figcaption>cap</figcaption></figure>',
      lines('![A](https://site.example/a.png)', '', 'cap'),
    ],
  ])('%s', (_, html, expected) => {
    expect(markdown(html)).toBe(expected);
  });

  test.each([
    ['flat', '<ul><li>a</li><li>b</li></ul>', lines('- a', '- b')],
    ['numbered', '<ol start=9><li>a<li>b</ol>', lines('9. a', '10. b')],
    ['nested', '<ul><li>a<ol><li>b<ul><li>c</ul></ol><li>d</ul>', lines('- a', '  1. b', '     - c', '- d')],
    ['of paragraphs', '<ul><li><p>a</p><p>b</p></li><li>c</li></ul>', lines('- a', '', '  b', '- c')],
    [
      'with empty items',
      '<p>x</p><ul><li> </li><li>a</li><li></li></ul><p>b',
      lines('x', '', '- a', '', 'b'),
    ],
    [
      'one after the other',
      '<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol><ol><li>d</ol>',
      lines('- a', '', '* b', '', '1. c', '', '1) d'),
    ],
    [
      'with code and a quote',
      '<ol><li>a<pre>x\n\ny</pre><blockquote>q</blockquote></ol>',
      lines('1. a', '', '   ```', '   x', '', '   y', '   ```', '', '   > q'),
    ],
    [
      'of tasks',
      '<ul><li><input type=checkbox checked> a<li><input type=checkbox>b</ul>',
      lines('- [x] a', '- [ ] b'),
    ],
    ['items without a list', '<li>a<li>b', lines('- a', '', '- b')],
  ])('lists: %s', (_, html, expected) => {
    expect(markdown(html)).toBe(expected);
  });

  test.each([
    ['as it is', '<pre>\n a\n\t<b>b</b> &lt;c&gt;\n\n</pre>', lines('```', ' a', '\tb <c>', '```')],
    ['with a language', '<pre><code class="hljs language-JS">x</code></pre>', lines('```js', 'x', '```')],
    [
      'with a language around it',
      '<div class="highlight-source-rust"><div><pre>x</pre></div></div>',
      lines('```rust', 'x', '```'),
    ],
    [
      'with a language that is none',
      '<pre class="language-none">x</pre><pre class="lang-`$(x)">y</pre>',
      lines('```', 'x', '```', '', '```', 'y', '```'),
    ],
    ['with fences inside', '<pre>a\n````\nb</pre>', lines('`````', 'a', '````', 'b', '`````')],
    ['of a line each', '<pre><div>a</div><div>b</div>c<br>d</pre>', lines('```', 'a', 'b', 'c', 'd', '```')],
    [
      'without line numbers',
      '<table><tr><td class="linenos"><pre>1\n2</pre><td><pre>a\nb</pre></table>',
      lines('```', 'a', 'b', '```'),
    ],
    ['empty', 'a<pre> \n</pre>b', lines('a', '', 'b')],
  ])('code: %s', (_, html, expected) => {
    expect(markdown(html)).toBe(expected);
  });
});

describe('tables', () => {
  test.each([
    [
      'with a head',
      '<table><thead><tr><td>A<td>B</thead><tr><td>1<td>2</table>',
      lines('| A | B |', '| --- | --- |', '| 1 | 2 |'),
    ],
    [
      'with headings',
      '<table><tr><th>A<th>B<tr><td>1</table>',
      lines('| A | B |', '| --- | --- |', '| 1 |  |'),
    ],
    [
      'without a head',
      '<table><tr><td>1<td>2<tr><td>3<td>4</table>',
      lines('|  |  |', '| --- | --- |', '| 1 | 2 |', '| 3 | 4 |'),
    ],
    [
      'with rich cells',
      '<table><tr><th>a|b<th><p>x</p><p>y</p><tr><td><a href=/c>c</a><td>d<br>e <code>f|g</code><ul><li>h<li>i</ul></table>',
      lines(
        '| a\\|b | x<br>y |',
        '| --- | --- |',
        '| [c](https://site.example/c) | d<br>e `f\\|g`<br>h<br>i |',
      ),
    ],
    [
      'with wide and high cells',
      '<table><tr><th>a<th colspan=2>b<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5</table>',
      lines('| a | b |  |', '| --- | --- | --- |', '| 1 | 2 | 3 |', '|  | 4 | 5 |'),
    ],
    [
      'with a caption',
      '<table><caption>Cap</caption><tr><td>1<td>2</table>',
      lines('Cap', '', '|  |  |', '| --- | --- |', '| 1 | 2 |'),
    ],
    [
      'in an item',
      '<ul><li>x<table><tr><th>a<th>b</table></ul>',
      lines('- x', '', '  | a | b |', '  | --- | --- |'),
    ],
    ['that only place things', '<table><tr><td><h2>a</h2><td><p>b</table>', lines('## a', '', 'b')],
    ['of one column', '<table><tr><th>a<tr><td>b</table>', lines('a', '', 'b')],
    [
      'in tables',
      '<table><tr><td>x<td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>',
      lines('x', '', '| a | b |', '| --- | --- |', '| 1 | 2 |'),
    ],
  ])('%s', (_, html, expected) => {
    expect(markdown(html)).toBe(expected);
  });
});

describe('within a line', () => {
  test.each([
    ['<b>a</b> <em>b</em> <s>c</s> <code>d</code>', '**a** *b* ~~c~~ `d`'],
    ['a<b> b </b>c', 'a **b** c'],
    ['<b>a</b><b>b</b><b> c</b>', '**ab** **c**'],
    ['<b>a<strong>b</strong></b><i></i><b> </b>', '**ab**'],
    ['<b><i>a</i></b> <i><b>b</b> c</i>', '***a*** ***b** c*'],
    ['<b>a<p>b</p>c</b>', lines('**a**', '', '**b**', '', '**c**')],
    ['<b>Note:</b> x <b>Note:</b>y x<b>(a)</b>', '**Note:** x Note:y x(a)'],
    ['<b>a<br></b>b', lines('**a**  ', 'b')],
    ['<code>a`b</code> <kbd>`</kbd> <code>  x  y </code>', '``a`b`` `` ` `` `x y`'],
    ['<code><b>a*b</b>_c_</code>', '`a*b_c_`'],
    ['He said <q>yes</q>.', 'He said "yes".'],
    ['10<sup>6</sup> x<sup>[a]</sup> H<sub>2</sub>O', '10^6 x[a\\] H2O'],
    ['soft&shy;hyphen zero&#8203;width hard&nbsp;space', 'softhyphen zerowidth hard space'],
    ['<math alttext="x^2"><mi>x</mi></math>', '$x^2$'],
    ['<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字', '漢字'],
  ])('%s', (html, expected) => {
    expect(markdown(html)).toBe(expected);
  });

  test.each([
    ['<a href="/x?a=1&amp;b=2">y</a>', '[y](https://site.example/x?a=1&b=2)'],
    ['<a href="../up/b.html#c"> y </a>', '[y](https://site.example/up/b.html#c)'],
    [
      '<a href="?b">y</a><a href="//cdn.example/z">z</a>',
      '[y](https://site.example/docs/page.html?b)[z](https://cdn.example/z)',
    ],
    [
      '<a href="/a_(b)">y</a> <a href="/a(b">z</a>',
      '[y](https://site.example/a_(b)) [z](https://site.example/a\\(b)',
    ],
    ['<a href="/a b">y</a>', '[y](https://site.example/a%20b)'],
    ['<a href="mailto:a@b.example">m</a>', '[m](mailto:a@b.example)'],
    ['<a href="javascript:x()">a</a> <a>b</a> <a href="">c</a> <a href="http://">d</a>', 'a b c d'],
    ['<a href=/x></a><a href=/y> </a>z', 'z'],
    ['<h2>T<a class=anchor href="#t">#</a></h2><h2><a href=#u>U</a></h2>', lines('## T', '', '## U')],
    [
      '<a href=/x><h3>T</h3><p>u</p></a>',
      lines('### [T](https://site.example/x)', '', '[u](https://site.example/x)'),
    ],
    ['<a href=/x>[1]</a>', '[\\[1\\]](https://site.example/x)'],
    ['Look!<a href=/x>y</a>', 'Look\\![y](https://site.example/x)'],
    [
      '<img src=a.png alt="a [b] *c*"><img><img src="data:x"><img src=/p.gif width=1 height=1>',
      '![a \\[b\\] \\*c\\*](https://site.example/docs/a.png)',
    ],
    [
      '<img src="data:x" data-src=/l.png> <img srcset="/s.png 1x, /t.png 2x">',
      '![](https://site.example/l.png) ![](https://site.example/s.png)',
    ],
    ['<a href=/x><img src=/i.png alt=i></a>', '[![i](https://site.example/i.png)](https://site.example/x)'],
  ])('%s', (html, expected) => {
    expect(markdown(html)).toBe(expected);
  });
});

describe('what is no content', () => {
  test.each([
    '<script>x</script>',
    '<style>x</style>',
    '<nav>x</nav>',
    '<noscript>x</noscript>',
    '<template>x</template>',
    '<p hidden>x</p>',
    '<p aria-hidden=true>x</p>',
    '<p style="color:red; DISPLAY : none">x</p>',
    '<span class="a sr-only">x</span>',
    '<svg><title>x</title><text>x</text></svg>',
    '<select><option>x</select>',
    '<iframe>x</iframe>',
    '<!-- x -->',
    '<textarea>x</textarea>',
    '<video>x</video>',
    '<head><title>x</title></head>',
  ])('%s is left out', (html) => {
    expect(markdown(`<p>a</p>${html}<p>b</p>`)).toBe('a\n\nb');
  });

  test('is kept when it is what was asked for, and its element counts', () => {
    const [nav, list] = parseDocument('<nav><a href=/x>x</a></nav><ul><li>a</ul>').children as Element[];
    expect(toMarkdown(nav!, BASE)).toBe('[x](https://site.example/x)');
    expect(toMarkdown(list!, BASE)).toBe('- a');
    const [item] = list!.children as Element[];
    expect(toMarkdown(item!, BASE)).toBe('- a');
  });
});

describe('text that looks like Markdown', () => {
  test.each([
    ['*a* **b** 2 * 3', '\\*a\\* \\*\\*b\\*\\* 2 * 3'],
    ['_a_ snake_case __init__', '\\_a\\_ snake_case \\_\\_init\\_\\_'],
    ['`a` ~b~ C:\\x', '\\`a\\` \\~b\\~ C:\\\\x'],
    ['[a](b) [1] [c]: d', '[a\\](b) [1] [c\\]: d'],
    ['&lt;b&gt; a &lt; b &lt;3', '\\<b> a < b <3'],
    ['&amp;amp; AT&amp;T &amp;#65; a &amp; b', '\\&amp; AT&T \\&#65; a & b'],
    ['# a', '\\# a'],
    ['#a', '#a'],
    ['&gt; a', '\\> a'],
    ['- a', '\\- a'],
    ['+ a', '\\+ a'],
    ['-a', '-a'],
    ['1. a', '1\\. a'],
    ['1) a', '1\\) a'],
    ['2019 was', '2019 was'],
    ['---', '\\---'],
    ['===', '\\==='],
    ['|---|---|', '\\|---|---|'],
    ['a<br># b<br>- c', 'a  \n\\# b  \n\\- c'],
    ['<ul><li># a<li>- b</ul>', '- \\# a\n- \\- b'],
  ])('%s', (html, expected) => {
    expect(markdown(html.startsWith('<ul>') ? html : `<p>${html}</p>`)).toBe(expected);
  });

  test('loses nothing but white space, whatever it is', () => {
    const piece = fc.constantFrom(
      ...'*_`~[]()<>&!#-+=|\\.1:; \n\tab'.split(''),
      'é',
      '漢',
      '😀',
      '&amp;',
      '&#65;',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const text = pieces.join('');
        const html = text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
        const read = markdown(`<p>${html}</p>`).replace(/\\([!-/:-@[-`{-~])/g, '$1');
        expect(read).toBe(text.replace(/\s+/g, ' ').trim());
      }),
      { numRuns: 2_000 },
    );
  });
});
