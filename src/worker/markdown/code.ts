import { type Element, isTag, isText } from 'domhandler';
import { isNeverContent } from './boilerplate.ts';
import { nextBeyond, nextNode } from './next-node.ts';

/** Code blocks: their text as it is, and their language. */

/** Highlighters that make an element of each line. */
const LINES = new Set(['div', 'p', 'li', 'tr']);
const GUTTER = new Set([
  'lineno',
  'linenos',
  'linenumber',
  'linenumbers',
  'line-number',
  'gutter',
  'blob-num',
]);
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]+/g;

export function isGutter({ attribs }: Element): boolean {
  const classes = attribs.class;
  return classes?.split(/\s+/, 8).some((name) => GUTTER.has(name)) ?? false;
}

export function codeIn(pre: Element): string {
  const pieces: string[] = [];
  let isLineStart = true;
  const add = (text: string): void => {
    if (text === '') return;
    pieces.push(text);
    isLineStart = text.endsWith('\n');
  };
  let node = pre.children[0] ?? null;
  while (node !== null) {
    let isEntered = true;
    const { prev } = node;
    const isAfterLine = !isLineStart && prev !== null && isTag(prev) && LINES.has(prev.name);
    if (isText(node)) add(isAfterLine && !node.data.startsWith('\n') ? `\n${node.data}` : node.data);
    else if (isTag(node)) {
      const isAgain = node.name === 'code' && prev !== null && isTag(prev) && prev.name === 'code';
      if (
        node.name === 'br' ||
        isAfterLine ||
        (isAgain && !isLineStart) ||
        (LINES.has(node.name) && !isLineStart)
      )
        add('\n');
      isEntered = node.name !== 'button' && !isGutter(node) && !isNeverContent(node);
    }
    node = isEntered ? nextNode(node, pre) : nextBeyond(node, pre);
  }
  const code = pieces.join('').replace(/\r\n?/g, '\n').replace(CONTROL, '');
  return trimLines(code.startsWith('\n') ? code.slice(1) : code);
}

/** Without empty lines at the end; a pattern for that would look at all white space of the text again and again. */
function trimLines(code: string): string {
  const end = code.trimEnd().length;
  return code.slice(0, end);
}

const LANGUAGE = /^(?:language|lang|highlight-source|highlight|brush|code)[-:](.+)$/i;
const MARKED = new Set(['hljs', 'sourceCode', 'prettyprint', 'brush:', 'src']);
const NAME = /^[a-z][a-z0-9+#._-]{0,19}$/i;
const NONE = new Set(['none', 'plain', 'plaintext', 'text', 'txt', 'default', 'no-highlight', 'nohighlight']);

/** By the class names that highlighters use, on the element, the code inside, or the boxes around it. */
export function languageOf(pre: Element): string {
  const inside = pre.children.find((child) => isTag(child) && child.name === 'code') as Element | undefined;
  const around = [pre.parent, pre.parent?.parent, pre.parent?.parent?.parent];
  for (const element of [inside, pre, ...around]) {
    if (!element || !isTag(element)) continue;
    const name = languageNamed(element);
    if (name !== null) return NONE.has(name) ? '' : name;
  }
  return '';
}

function languageNamed({ attribs }: Element): string | null {
  const data = attribs['data-lang'] ?? attribs['data-language'];
  if (data !== undefined && NAME.test(data)) return data.toLowerCase();
  const classes = (attribs.class ?? '').split(/\s+/, 12);
  const said = classes.map((one) => LANGUAGE.exec(one)?.[1]).find((name) => name !== undefined);
  const name = said ?? classes[classes.findIndex((one) => MARKED.has(one)) + 1];
  const isMarked = said !== undefined || classes.some((one) => MARKED.has(one));
  return isMarked && name !== undefined && NAME.test(name) ? name.toLowerCase() : null;
}
