import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';
import { isHtml } from '../../core/media/media-type.ts';
import { type Page, resolveBase } from '../page/page.ts';
import { MARKDOWN_CHARS_MAX } from './blocks.ts';
import { isNeverContent } from './boilerplate.ts';
import { ElementWriter, type Leave, SKIP } from './elements.ts';
import { findContent } from './main-content.ts';

const NOTHING: ReadonlySet<Element> = new Set();

/** GitHub's Markdown of an element or a document, without scripts, menus and what is hidden. Links are absolute. */
export function toMarkdown(
  root: Document | Element,
  baseUrl: string,
  omitted: ReadonlySet<Element> = NOTHING,
): string {
  const writer = new ElementWriter(new URL(baseUrl));
  // Step by step instead of by recursion: a page can nest deeper than the call stack.
  const leaving: { node: Element; leave: Leave }[] = [];
  const enter = (node: ChildNode | Document): boolean => {
    if (isText(node)) writer.text(node.data);
    if (!isTag(node)) return 'children' in node;
    if (node !== root && (omitted.has(node) || isNeverContent(node))) {
      if (node.name === 'input') writer.checkbox(node);
      return false;
    }
    const leave = writer.begin(node);
    if (leave === SKIP) return false;
    if (leave !== null) leaving.push({ node, leave });
    return true;
  };

  let node: ChildNode | Document | null = root;
  walk: while (node !== null && !writer.isFull) {
    if (enter(node) && 'children' in node && node.children.length > 0) {
      node = node.children[0]!;
      continue;
    }
    for (;;) {
      if (leaving.at(-1)?.node === node) leaving.pop()!.leave();
      if (node === root) break walk;
      if (node.next !== null) break;
      node = node.parent as ChildNode | Document;
    }
    node = node.next;
  }
  while (leaving.length > 0) leaving.pop()!.leave();
  return writer.end();
}

/** Title and main content of a page: of an article, a product, a thread… without what is around it on every page. */
export function mainContent(page: Page): { title: string | null; markdown: string } {
  if (!isHtml(page.contentType)) {
    const isText = page.contentType === 'text/plain' || page.contentType === 'text/markdown';
    return { title: null, markdown: isText ? page.text.slice(0, MARKDOWN_CHARS_MAX).trim() : '' };
  }
  const { base, title, root, omitted } = findContent(page.document);
  return { title, markdown: toMarkdown(root, resolveBase(base, page.url), omitted) };
}
