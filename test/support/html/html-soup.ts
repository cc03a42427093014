import { selectAll, selectOne } from 'css-select';
import type { Document, Element } from 'domhandler';
import fc from 'fast-check';
import { parseDocument } from 'htmlparser2';
import { textOfElement } from '../../../src/worker/page/page.ts';
import { parseSelector } from '../../../src/worker/page/parse-selector.ts';
import { parseStreamSelector } from '../../../src/worker/selectors/compile.ts';
import type { StreamValue } from '../../../src/worker/selectors/matches.ts';
import { compileStreamSelectors } from '../../../src/worker/selectors/stream-select.ts';

/** Pages that no one would write, selectors for them, and both ways of asking. */

const words = (text: string) => text.split(' ');

export interface Asked {
  css: string;
  attr?: string;
  all?: boolean;
}

export function compileAsked(asked: Asked[]): (html: string) => StreamValue[] {
  const fields = asked.map(({ css, attr, all = false }) => {
    const selector = parseStreamSelector(css);
    if (selector === null) throw new Error(`needs a tree: ${css}`);
    return { selector, attr, all };
  });
  return compileStreamSelectors(fields);
}

export const streamed = (html: string, asked: Asked[]) => compileAsked(asked)(html);

/** The same asked of a tree. */
export function byTree(html: string, asked: Asked[]): StreamValue[] {
  const document = parseDocument(html);
  return asked.map(({ css, attr, all }) => {
    const read = (element: Element) =>
      attr === undefined ? textOfElement(element) : (element.attribs[attr] ?? null);
    if (all)
      return selectAll<Document | Element, Element>(parseSelector(css), document)
        .map(read)
        .filter((value) => value !== null);
    const element = selectOne<Document | Element, Element>(parseSelector(css), document);
    return element ? read(element) : null;
  });
}

const SOUP_TAGS = words(
  'p div li ul a b h1 h2 table thead tbody tfoot tr td th select option optgroup button textarea title script style ' +
    'svg math mi desc foreignObject linearGradient form input br img image hr dl dt dd ruby rt rp template body head ' +
    'html plaintext iframe xmp noembed noframes span x-y H1 DIV sCript TITLE annotation-xml link section datalist',
);
const FEW_TAGS = words('p div b a li svg title form');
const tagName = fc.oneof(fc.constantFrom(...FEW_TAGS), fc.constantFrom(...SOUP_TAGS));
const attribute = fc
  .tuple(
    fc.constantFrom(...words('a b id class CLASS Id lang data-x a:b \u212a = "')),
    fc.constantFrom('=', ' = ', '', '=\n'),
    fc.constantFrom('"', "'", ''),
    fc.constantFrom(
      ...words('a b A a-b ab x>y " \' &amp; &#97; &copy &copy= a/ <b> & &#x61 a\u00a0b \u0000 &ampx =a'),
      ...['', 'a b', 'b a', ' a\t'],
    ),
    fc.constantFrom(' ', '', '/', '\n'),
  )
  .map(([name, equals, quote, value, after]) =>
    equals === '' ? name + after : name + equals + quote + value + quote + after,
  );
const startTag = fc
  .tuple(
    tagName,
    fc.array(attribute, { maxLength: 3 }),
    fc.constantFrom('>', '>', '>', '/>', ' / >', ' >', '', '">'),
  )
  .map(([name, attributes, end]) => `<${[name, ...attributes].join(' ')}${end}`);
const endTag = fc
  .tuple(tagName, fc.constantFrom('>', '>', '>', '>', ' >', ' a=">', '/>', ''))
  .map(([name, end]) => `</${name}${end}`);
const oddity = fc.constantFrom(
  ...words(
    '< </ <! <!-- --> --!> <!--> <!---> <!--- <![CDATA[ ]]> <? ?> <!doctype <!d </> <> " \' > / = - ] ! <tit <p',
  ),
  ...words(
    '& &amp &amp; &lt; &notit; &#65 &#x &#0; \u0000 \u001c/title> <\u000fscript> </scr </title <&amp; \u00a0',
  ),
  ...['</ ', '< b>', ' ', '\n', 'x', ' y ', 'z\n z', 'é', '&eacute', '1 < 2'],
);
export const soup = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: startTag },
      { weight: 4, arbitrary: endTag },
      { weight: 4, arbitrary: oddity },
    ),
    { maxLength: 24 },
  )
  .map((pieces) => pieces.join(''));

const simple = fc.oneof(
  fc.constantFrom(...words('.a .b .A #a #b #ab [a] [b] [data-x] [CLASS] [lang=A] [a=a]')),
  fc
    .tuple(
      fc.constantFrom(...words('a b class id lang data-x')),
      fc.constantFrom(...words('= ~= ^= $= *= |= !=')),
      fc.constantFrom(...words('a b A ab a-b a/ © <b>'), 'a b', ''),
      fc.constantFrom('', ' i', ' s'),
    )
    .map(([name, operator, value, flag]) => `[${name}${operator}"${value}"${flag}]`),
);
const selectorTag = fc.oneof(
  fc.constantFrom('*', ...FEW_TAGS),
  fc.constantFrom(...SOUP_TAGS, 'foreignobject'),
);
const compound = fc.oneof(
  selectorTag,
  fc.array(simple, { minLength: 1, maxLength: 2 }).map((parts) => parts.join('')),
  fc.tuple(selectorTag, simple).map((parts) => parts.join('')),
);
const complex = fc
  .array(fc.tuple(compound, fc.constantFrom(' ', ' > ', '>')), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.map(([part, join], index) => (index === 0 ? part : join + part)).join(''));
export const asking: fc.Arbitrary<Asked> = fc.record(
  {
    css: fc.array(complex, { minLength: 1, maxLength: 2 }).map((list) => list.join(', ')),
    attr: fc.constantFrom(...words('a id class data-x k')),
    all: fc.boolean(),
  },
  { requiredKeys: ['css'] },
);
