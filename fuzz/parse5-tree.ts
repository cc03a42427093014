import { type ChildNode, Comment, Document, Element, isTag, Text } from 'domhandler';
import { type DefaultTreeAdapterTypes, parse } from 'parse5';

/** A page as browsers see it: parse5's tree in the form of ours, so that the same selectors and readers work on it. */

interface BrowserTree {
  document: Document;
  /** Names of what the standard calls parse errors. */
  errors: string[];
}

/** Scripts do not run here: what is inside `<noscript>` counts. The content of templates is left out unless asked for. */
export function parseAsBrowser(html: string): BrowserTree {
  const errors: string[] = [];
  const tree = parse(html, {
    scriptingEnabled: false,
    onParseError: ({ code }) => void errors.push(code),
  });
  return { document: new Document(childrenOf(tree, null)), errors };
}

/**
 * Whether the page is written as a browser sees it: without errors, every element closed in its turn, none moved and none
 * made up. Only then is the tree of the source the tree of a browser; see docs/extraction.md for what is different.
 */
export function isValidPage(html: string, { document, errors }: BrowserTree): boolean {
  // A browser drops a line end right after these.
  if (errors.length > 0 || /<(pre|textarea|listing)[^>]*>\r?\n/i.test(html)) return false;
  const built: string[] = [];
  const walk = (nodes: ChildNode[]) => {
    for (const node of nodes) {
      if (!isTag(node)) continue;
      built.push(node.name);
      walk(node.children);
    }
  };
  walk(document.children);
  return namesIfNested(html)?.join(' ') === built.join(' ');
}

/** The names of the elements in the order of the page; null unless each is closed in its turn. */
export function namesIfNested(html: string): string[] | null {
  const opened: string[] = [];
  const stack: string[] = [];
  const tags =
    /<!--.*?-->|<(script|style|title|textarea)\b[^>]*>.*?<\/\1>|<(\/?)([a-z][^\s/>]*)((?:[^>"']|"[^"]*"|'[^']*')*)>/gis;
  for (const [, only, slash, name, rest] of html.matchAll(tags)) {
    if (only !== undefined) opened.push(only);
    else if (name === undefined) continue;
    else if (slash === '/') {
      if (stack.pop() !== name) return null;
    } else {
      opened.push(name);
      if (!VOID.has(name) && !rest!.endsWith('/')) stack.push(name);
    }
  }
  return stack.length === 0 ? opened : null;
}

const VOID = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

interface BrowserLink {
  name: string;
  at: number;
  attributes: Map<string, string>;
}

/** Elements that may hold links, in the order of the page, each once: the parser makes copies of some. */
export function linksAsBrowser(html: string): BrowserLink[] {
  const tree = parse(html, { scriptingEnabled: false, sourceCodeLocationInfo: true });
  const found = new Map<number, BrowserLink>();
  const open: DefaultTreeAdapterTypes.Node[] = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if ('content' in node) open.push(node.content);
    if (!('childNodes' in node)) continue;
    open.push(...node.childNodes);
    if (!('tagName' in node) || !['a', 'area', 'link', 'base'].includes(node.tagName)) continue;
    const at = node.sourceCodeLocation?.startOffset;
    if (at === undefined) continue;
    const attributes = new Map(node.attrs.map(({ name, value }) => [name, value]));
    found.set(at, { name: node.tagName, at, attributes });
  }
  return [...found.values()].sort((a, b) => a.at - b.at);
}

function childrenOf(parent: DefaultTreeAdapterTypes.ParentNode, owner: Element | null): ChildNode[] {
  const children = parent.childNodes.flatMap((node) => convert(node));
  for (const [index, child] of children.entries()) {
    child.parent = owner;
    child.prev = children[index - 1] ?? null;
    child.next = children[index + 1] ?? null;
  }
  return children;
}

function convert(node: DefaultTreeAdapterTypes.ChildNode): ChildNode[] {
  if ('tagName' in node) {
    const attributes = Object.fromEntries(node.attrs.map(({ name, value }) => [name, value]));
    const element = new Element(node.tagName, attributes, []);
    element.children = childrenOf(node, element);
    return [element];
  }
  if (node.nodeName === '#text') return [new Text((node as DefaultTreeAdapterTypes.TextNode).value)];
  if (node.nodeName === '#comment') return [new Comment((node as DefaultTreeAdapterTypes.CommentNode).data)];
  return [];
}
