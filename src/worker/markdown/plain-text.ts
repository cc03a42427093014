import { type ChildNode, type Element, isTag, isText } from 'domhandler';

/** What is not text that people see. */
const HIDDEN = new Set('script style noscript template head title iframe object svg math'.split(' '));
/** Each begins a line, and ends one. */
const BLOCKS = new Set(
  (
    'html body main article section div p header footer aside nav address figure figcaption fieldset legend form details ' +
    'summary center hgroup dl dt dd ul ol li table thead tbody tfoot tr caption search blockquote pre hr ' +
    'h1 h2 h3 h4 h5 h6 select option'
  ).split(' '),
);
/** Cells of a row are on one line. */
const CELLS = new Set(['td', 'th']);

/** The text of an element as people read it: a line for each block. Deep pages need no stack. */
export function plainText(element: Element): string {
  let text = '';
  const waiting: (ChildNode | string)[] = [element];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next === 'string') text += next;
    else if (isText(next)) text += next.data.replace(/\s+/g, ' ');
    else if (isTag(next) && !HIDDEN.has(next.name)) {
      const around = BLOCKS.has(next.name) ? '\n' : CELLS.has(next.name) ? ' ' : '';
      text += next.name === 'br' ? '\n' : around;
      waiting.push(around);
      for (let index = next.children.length - 1; index >= 0; index--) waiting.push(next.children[index]!);
    }
  }
  return text
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n')
    .trim();
}
