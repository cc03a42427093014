import { scanLinks } from '../../src/worker/links/link-scanner.ts';
import { linksOf } from '../../src/worker/native-links/native-links.ts';
import { soup, validPage } from '../html-generator.ts';
import { mutate } from '../mutate.ts';
import { linksAsBrowser, namesIfNested } from '../parse5-tree.ts';
import { mustEqual, type Target } from '../target.ts';

/** The links of a page without a tree, against the tree that browsers build. */

const PIECES = [
  '<a href=/x>',
  '</a>',
  '<svg>',
  '</svg>',
  '<title>',
  '<script>',
  '</script>',
  '<!--',
  '-->',
  '<template>',
  '"',
  "'",
  '>',
  '<',
];

export function openLinksTarget(): Target {
  return {
    generate(random) {
      const html = random.oneIn(3) ? validPage(random) : soup(random);
      return random.oneIn(3) ? mutate(Buffer.from(html), random, PIECES) : Buffer.from(html);
    },
    check(input) {
      const html = input.toString('utf8');
      if (hasKnownDifference(html)) return;
      const hrefs: string[] = [];
      const page = Buffer.from(html);
      const { base } = scanLinks(page, linksOf(page), { onHref: (href) => hrefs.push(visible(href)) });
      const links = linksAsBrowser(html);
      mustEqual(hrefs, links.flatMap(hrefOf), 'links');
      const bases = links.filter(({ name, attributes }) => name === 'base' && attributes.has('href'));
      mustEqual(base && visible(base), trimmed(bases[0]?.attributes.get('href') ?? '') || null, 'base');
    },
  };
}

/** A browser replaces U+0000; a URL has it escaped in the end, either way. */
// A URL loses its line ends when it is resolved, of whichever kind they are.
const visible = (href: string) => href.replaceAll('\0', '\ufffd').replaceAll(/\r\n?/g, '\n');

const trimmed = (text: string) => text.replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, '');

function hrefOf({ name, attributes }: { name: string; attributes: Map<string, string> }): string[] {
  const href = attributes.get('href');
  if (name === 'base' || href === undefined) return [];
  if (
    name === 'link' &&
    !(attributes.get('rel') ?? '')
      .toLowerCase()
      .split(/[\t\n\f\r ]+/)
      .some((rel) => rel === 'next' || rel === 'prev')
  )
    return [];
  const text = trimmed(href);
  return text === '' || text.startsWith('#') || /^(javascript|mailto|tel|data):/i.test(text) ? [] : [text];
}

/** What is different on purpose: docs/extraction.md has the reasons. */
function hasKnownDifference(html: string): boolean {
  // The standard allows anything inside a `select` by now, parse5 does not yet.
  if (/<select/i.test(html)) return true;
  // Pictures that are not closed in their turn, and scripts and styles in them.
  const foreignAt = html.search(/<(svg|math)/i);
  return (
    foreignAt !== -1 &&
    (namesIfNested(html) === null ||
      /<(script|style|textarea|iframe|xmp|noembed|noframes|plaintext|foreignObject|desc|mi|annotation-xml)/i.test(
        html.slice(foreignAt),
      ))
  );
}
