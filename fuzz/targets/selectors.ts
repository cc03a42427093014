import { selectAll } from 'css-select';
import type { Document, Element } from 'domhandler';
import { textOfElement } from '../../src/worker/page/page.ts';
import { parseHtml } from '../../src/worker/page/parse-html.ts';
import { parseStreamSelector } from '../../src/worker/selectors/compile.ts';
import { compileStreamSelectors } from '../../src/worker/selectors/stream-select.ts';
import { selector, soup, validPage } from '../html-generator.ts';
import { mutate } from '../mutate.ts';
import { isValidPage, parseAsBrowser } from '../parse5-tree.ts';
import { mustEqual, type Target } from '../target.ts';

/**
 * Selectors on any page: in one pass over the text they find what css-select finds in the tree; and on a page without
 * mistakes both find what is in the tree that browsers build. The first line of an input is the selector.
 */
export function openSelectorsTarget(): Target {
  return {
    generate(random) {
      const isValid = random.oneIn(2);
      const page = isValid ? validPage(random) : soup(random);
      const html = !isValid && random.oneIn(3) ? mutate(Buffer.from(page), random) : Buffer.from(page);
      return Buffer.concat([Buffer.from(`${selector(random, !random.oneIn(3))}\n`), html]);
    },
    check(input) {
      const text = input.toString('utf8');
      const lineEnd = text.indexOf('\n');
      const css = text.slice(0, Math.max(0, lineEnd));
      const html = text.slice(lineEnd + 1);
      const found = allIn(parseHtml(html), css);
      if (found === null) return;
      const plain = parseStreamSelector(css);
      if (plain !== null) {
        for (const attr of [undefined, 'class', 'href']) {
          const [streamed] = compileStreamSelectors([{ selector: plain, attr, all: true }])(html);
          mustEqual(
            streamed,
            attr === undefined ? found : allIn(parseHtml(html), css, attr),
            `stream, ${attr ?? 'text'}`,
          );
        }
      }
      const browser = parseAsBrowser(html);
      if (isValidPage(html, browser)) mustEqual(found, allIn(browser.document, css), 'browser');
    },
  };
}

/** Null for a selector that is none. */
function allIn(document: Document, css: string, attr?: string): (string | null)[] | null {
  let elements: Element[];
  try {
    elements = selectAll<Document | Element, Element>(css, document);
  } catch {
    return null;
  }
  return elements
    .map((element) => (attr === undefined ? textOfElement(element) : (element.attribs[attr] ?? null)))
    .filter((value) => value !== null);
}
