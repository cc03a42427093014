import { type ChildNode, isTag, isText } from 'domhandler';
import {
  ELEMENTS_MAX,
  type ElementFacts,
  type PageFacts,
  VALUE_LENGTH_MAX,
} from '../core/selector-search/page-facts.ts';
import type { Page } from '../worker/page/page.ts';
import { foldSpace } from '../worker/page/text.ts';
import { parseJson } from '../worker/records/json-ld.ts';

/** Values of JSON-LD that are looked at: the rest of a page that has more is its whole catalogue. */
const DATA_MAX = 2_000;
const DATA_DEPTH_MAX = 8;

/** What the search for selectors needs of a page. */
export function factsOf(page: Page): PageFacts {
  const elements: ElementFacts[] = [];
  // In the order of the document: what is below an element comes before its next sibling.
  const walk = (nodes: readonly ChildNode[], parent: number): string | null => {
    const counts = new Map<string, number>();
    let before = -1;
    let inside: string | null = '';
    for (const node of nodes) {
      if (isText(node)) inside = joined(inside, node.data);
      if (!isTag(node) || elements.length >= ELEMENTS_MAX) continue;
      const nth = (counts.get(node.name) ?? 0) + 1;
      counts.set(node.name, nth);
      const index = elements.length;
      const facts = {
        tag: node.name,
        attributes: new Map(Object.entries(node.attribs)),
        ...{ text: null as string | null, parent, before, nth },
      };
      elements.push(facts);
      before = index;
      const text = walk(node.children, index);
      facts.text = text === null ? null : foldSpace(text);
      if (node.name !== 'script' && node.name !== 'style') inside = joined(inside, text);
    }
    return inside;
  };
  walk(page.document.children, -1);
  return { url: page.url, elements, data: dataOf(page) };
}

/** Null when it is no value any more, so that nothing is put together for the whole page again and again. */
function joined(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return null;
  return one.length + other.length > VALUE_LENGTH_MAX ? null : one + other;
}

function dataOf(page: Page): PageFacts['data'] {
  const found: { path: string; text: string }[] = [];
  const leaf = (path: string, value: unknown) => {
    if (found.length < DATA_MAX && (typeof value === 'string' || typeof value === 'number'))
      found.push({ path, text: String(value) });
  };
  const visit = (value: unknown, path: string | null, depth: number): void => {
    if (depth > DATA_DEPTH_MAX || found.length >= DATA_MAX) return;
    if (Array.isArray(value)) {
      for (const item of value) visit(item, path, depth + 1);
    } else if (typeof value === 'object' && value !== null) {
      const type: unknown = Reflect.get(value, '@type');
      const start = path ?? (typeof type === 'string' ? type.replace(/^.*[/#:]/, '') : null);
      for (const [name, inner] of Object.entries(value)) {
        if (name === '@graph') visit(inner, null, depth + 1);
        else if (start !== null && !name.startsWith('@') && !/[.[\]]/.test(name))
          visit(inner, `${start}.${name}`, depth + 1);
      }
    } else if (path !== null) leaf(path, value);
  };
  for (const block of page.all('script[type="application/ld+json"]'))
    visit(parseJson(block.children.map((node) => ('data' in node ? node.data : '')).join('')), null, 0);
  return found;
}
