import { type ChildNode, type Element, isComment, isDirective, isTag, isText } from 'domhandler';
import { escapeAttribute, escapeText } from 'entities/escape';

const words = (text: string) => new Set(text.split(' '));

const VOID = words(
  'area base basefont br col command embed frame hr img input isindex keygen link meta param source track wbr',
);
/** Their text has no character references. */
const RAW = words('style script xmp iframe noembed noframes plaintext');

/**
 * The HTML inside an element. `spend` is told of each node and piece, and throws when it is too much. No recursion: a
 * page can nest deeper than the call stack.
 */
export function innerHtml(root: Element, spend: (steps: number) => void): string {
  let html = '';
  const add = (piece: string) => {
    spend(piece.length + 1);
    html += piece;
  };
  let node: ChildNode | null = root.firstChild;
  while (node !== null) {
    add(openingOf(node, spend));
    if (isTag(node) && node.firstChild !== null) {
      node = node.firstChild;
      continue;
    }
    add(closingOf(node));
    while (node.nextSibling === null && node.parent !== null && node.parent !== root) {
      node = node.parent as ChildNode;
      add(closingOf(node));
    }
    node = node.nextSibling;
  }
  return html;
}

function openingOf(node: ChildNode, spend: (steps: number) => void): string {
  if (isText(node)) return isRaw(node.parent as Element | null, spend) ? node.data : escapeText(node.data);
  if (isComment(node)) return `<!--${node.data}-->`;
  if (isDirective(node)) return `<${node.data}>`;
  if (!isTag(node)) return '';
  const attributes = Object.entries(node.attribs).map(
    ([name, value]) => ` ${name}="${escapeAttribute(value)}"`,
  );
  return `<${node.name}${attributes.join('')}>`;
}

function closingOf(node: ChildNode): string {
  return isTag(node) && !VOID.has(node.name) ? `</${node.name}>` : '';
}

/** In SVG and MathML these are elements like others. */
function isRaw(element: Element | null, spend: (steps: number) => void): boolean {
  if (element === null || !RAW.has(element.name)) return false;
  for (let at = element.parent; at !== null && isTag(at); at = at.parent) {
    spend(1);
    if (at.name === 'svg' || at.name === 'math') return false;
  }
  return true;
}
