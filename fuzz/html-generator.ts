import type { Random } from './random.ts';

/** HTML of two kinds: pages that follow the rules, and soup that does not. */

const words = (text: string) => text.split(' ');

const SOUP_TAGS = words(
  'p div li ul a b h1 table tbody tr td select option button textarea title script style svg math mi desc foreignObject ' +
    'form input br img hr dl dt dd template body head html plaintext iframe xmp noembed noframes span x-y annotation-xml ' +
    'link section base area a a a svg title script style',
);
const SOUP_TEXTS = words(
  '< </ <! <!-- --> --!> <!--> <!---> <![CDATA[ ]]> <? ?> </> <> " \' > / = - & &amp; &lt; &#65 &#0; \u0000 x y é </scr',
);
const VALUES = [
  ...words('/1 /2 ?a=1&b=2 &amp; a&#47;b " \' > x>y #f javascript:x next prev'),
  ' /s ',
  '',
  'a b',
];
const ATTRIBUTES = words('href href href HREF rel class id title a = " encoding');

function soupTag(random: Random): string {
  if (random.oneIn(3))
    return `</${random.pick(SOUP_TAGS)}${random.pick(['>', '>', '>', ' >', '/>', ' a=">', ''])}`;
  const attributes = random.text(0, 3, () => {
    const quote = random.pick(['"', '"', "'", '']);
    const equals = random.pick(['=', '=', ' = ', '']);
    const value = equals === '' ? '' : quote + random.pick(VALUES) + quote;
    return ` ${random.pick(ATTRIBUTES)}${equals}${value}`;
  });
  return `<${random.pick(SOUP_TAGS)}${attributes}${random.pick(['>', '>', '>', '>', '/>', ' / >', '', '">'])}`;
}

export function soup(random: Random): string {
  return random.text(0, 24, () => (random.oneIn(3) ? random.pick(SOUP_TEXTS) : soupTag(random)));
}

/** What may stand inside, by kind of element. */
const PHRASING = words('span b i em strong code small a label q');
const FLOW = words('div section article p ul ol table h1 h2 dl blockquote figure nav form select pre main');
const WORDS = [
  ...words('one two three caf\u00e9 &amp; &lt;b&gt; &eacute; &#x41; 5&nbsp;kg'),
  ' ',
  '\n',
  'a > b',
];
const CLASSES = words('a b c A ab');

/** A page without a mistake: every element closed, none where it may not be. `html`, `head` and `body` are written out. */
export function validPage(random: Random): string {
  const page = new ValidPage(random);
  return `<!DOCTYPE html><html><head><title>${page.text()}</title>${page.head()}</head><body>${page.flow(0)}</body></html>`;
}

class ValidPage {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  text(): string {
    return this.#random.text(0, 4, () => this.#random.pick(WORDS));
  }

  head(): string {
    return this.#random.text(0, 2, () =>
      this.#random.pick([
        '<meta name="k" content="v">',
        '<style>p > a { color: red }</style>',
        '<script>if (1 < 2) go("</p>")</script>',
        '<link rel="next" href="/n">',
      ]),
    );
  }

  flow(depth: number): string {
    return this.#random.text(0, depth > 4 ? 1 : 4, () => this.#flowElement(depth));
  }

  #phrasing(depth: number, inLink = false): string {
    const random = this.#random;
    return random.text(0, depth > 5 ? 1 : 3, () => {
      if (random.oneIn(2)) return this.text();
      if (random.oneIn(6))
        return random.pick([
          '<br>',
          '<img src="/i.png" alt="x">',
          '<input name="n">',
          '<!-- note -->',
          '<svg><g><path d="M0"/></g></svg>',
        ]);
      const name = random.pick(PHRASING);
      if (inLink && (name === 'a' || name === 'label')) return this.text();
      return this.#element(name, this.#phrasing(depth + 1, inLink || name === 'a' || name === 'label'));
    });
  }

  #flowElement(depth: number): string {
    const random = this.#random;
    if (random.oneIn(3)) return this.#phrasing(depth);
    const name = random.pick(FLOW);
    const items = (item: string, content: () => string) =>
      random.text(1, 3, () => this.#element(item, content()));
    switch (name) {
      case 'p':
      case 'h1':
      case 'h2':
      case 'pre':
        return this.#element(name, this.#phrasing(depth + 1));
      case 'ul':
      case 'ol':
        return this.#element(
          name,
          items('li', () => this.flow(depth + 1)),
        );
      case 'dl':
        return this.#element(
          name,
          items('dt', () => this.#phrasing(depth + 1)) + items('dd', () => this.flow(depth + 1)),
        );
      case 'select':
        return this.#element(
          name,
          items('option', () => this.text()),
        );
      case 'form':
        // None inside another.
        return this.#element(name, this.#phrasing(depth + 1));
      case 'table':
        return this.#element(
          name,
          this.#element(
            'tbody',
            items('tr', () => items('td', () => this.#phrasing(depth + 1))),
          ),
        );
      default:
        return this.#element(name, this.flow(depth + 1));
    }
  }

  #element(name: string, content: string): string {
    const random = this.#random;
    let attributes = '';
    if (random.oneIn(2)) attributes += ` class="${random.list(1, 2, () => random.pick(CLASSES)).join(' ')}"`;
    if (random.oneIn(4)) attributes += ` id=${random.pick(CLASSES)}`;
    if (name === 'a') attributes += ` href='${random.pick(['/1', '/2?a=1&amp;b=2', '#x'])}'`;
    return `<${name}${attributes}>${content}</${name}>`;
  }
}

const TYPES = words('p div b a li td tr tbody table span title option * svg path body x-y h1');
const SIMPLE = [
  ...words(
    '.a .b .A #a #b [class] [id] [href] [class=a] [class~=b] [href^="/"] [class*=a] [id!=a] [href$="2" i]',
  ),
];

function compound(random: Random): string {
  const type = random.oneIn(2) ? random.pick(TYPES) : '';
  const rest = random.text(type === '' ? 1 : 0, 2, () => random.pick(SIMPLE));
  return type + rest;
}

/** `isPlain`: one that needs no tree. */
export function selector(random: Random, isPlain: boolean): string {
  const parts = random.list(1, 3, () => compound(random));
  const joins = isPlain ? [' ', ' > ', '>'] : [' ', ' > ', ' + ', ' ~ '];
  let css = parts[0]!;
  for (const part of parts.slice(1)) css += random.pick(joins) + part;
  if (!isPlain && random.oneIn(2))
    css += random.pick([
      ':first-child',
      ':last-child',
      ':nth-child(2)',
      ':not(.a)',
      ':has(b)',
      ':empty',
      ':is(p, a)',
    ]);
  return random.oneIn(5) ? `${css}, ${compound(random)}` : css;
}
