import { _compileUnsafe, type Options } from 'css-select';
import { type ChildNode, type Document, Element, isTag, isText } from 'domhandler';
import { DomUtils } from 'htmlparser2';
import { parseSelector } from './parse-selector.ts';
import { foldSpace } from './text.ts';

/** Values of one field of a page, items of one list: more is a trap, and would not fit a record anyway. */
export const VALUES_PER_FIELD_MAX = 10_000;
/** Nodes and characters looked at by all selectors of one page together: a second or two. Nested ones could ask for n². */
export const TREE_STEPS_MAX = 50_000_000;

type Root = Document | Element;

/** Whether an element matches. Relative ones (`> a`, `+ dd`) are meant from the element that is searched in. */
export interface TreeQuery {
  (element: Element): boolean;
  shouldTestNextSiblings?: boolean;
}

/**
 * Finds elements of a tree, and their text, within a number of steps: a page whose elements nest a million deep, or
 * have a million siblings, would otherwise cost the square of that. Elements, order and templates are as in css-select.
 */
export class TreeSearch {
  #left: number = TREE_STEPS_MAX;
  readonly #scope: Root[] = [new Element('scope', {})];
  readonly #options: Options<Root, Element>;
  readonly #scopedOptions: Options<Root, Element>;

  constructor() {
    const adapter = {
      ...DomUtils,
      isTag,
      // Attributes are a plain object, in which every `constructor` is found.
      getAttributeValue: ({ attribs }: Element, name: string) => {
        const value: unknown = attribs[name];
        return typeof value === 'string' ? value : undefined;
      },
      getChildren: (node: Root) => this.#counted(DomUtils.getChildren(node)),
      getSiblings: (node: Root) => this.#counted(DomUtils.getSiblings(node)),
      getParent: (node: Element) => {
        this.spend(1);
        return node.parent;
      },
      // What css-select takes for text in `:contains`.
      getText: (node: Root) => this.#gather(node, () => false, '\n'),
    };
    this.#options = { adapter } as Options<Root, Element>;
    // css-select looks at the context when it matches, so one compiled query serves every element.
    this.#scopedOptions = { adapter, context: this.#scope } as Options<Root, Element>;
  }

  /** `scoped` selectors are searched in elements, others in documents. Throws when it is no CSS. */
  compile(css: string, scoped: boolean): TreeQuery {
    checkSelector(css);
    return _compileUnsafe<Root, Element>(
      parseSelector(css),
      scoped ? this.#scopedOptions : this.#options,
    ) as TreeQuery;
  }

  /** To be called for each page: its steps are counted from here. */
  begin(): void {
    this.#left = TREE_STEPS_MAX;
  }

  first(query: TreeQuery, root: Root): Element | null {
    return this.#find(query, root, 1)[0] ?? null;
  }

  all(query: TreeQuery, root: Root): Element[] {
    return this.#find(query, root, VALUES_PER_FIELD_MAX);
  }

  /** As many as there are: only the steps limit them. */
  every(query: TreeQuery, root: Root): Element[] {
    return this.#find(query, root, Number.POSITIVE_INFINITY);
  }

  /** Its text but for scripts and styles inside it. */
  textOf(element: Element): string {
    return foldSpace(this.rawTextOf(element));
  }

  rawTextOf(element: Element): string {
    return this.#gather(element, ({ name }) => name === 'script' || name === 'style');
  }

  /** Each node is a step; so is each character of what is made of them. */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new Error(`the selectors of a page take more than ${TREE_STEPS_MAX} steps`);
  }

  #find(query: TreeQuery, root: Root, max: number): Element[] {
    this.#scope[0] = root;
    const found: Element[] = [];
    this.#findBelow(query, root, max, found);
    if (query.shouldTestNextSiblings !== true) return found;
    for (let next = root.nextSibling; next !== null; next = next.nextSibling) {
      this.spend(1);
      if (!isTag(next)) continue;
      this.#test(query, next, max, found);
      this.#findBelow(query, next, max, found);
    }
    return found;
  }

  #test(query: TreeQuery, element: Element, max: number, found: Element[]): void {
    if (found.length >= max && max === 1) return;
    if (!query(element)) return;
    if (found.push(element) > max) throw new Error(`a selector matches more than ${max} elements`);
  }

  #findBelow(query: TreeQuery, root: Root, max: number, found: Element[]): void {
    let node: ChildNode | null = root.firstChild as ChildNode | null;
    while (node !== null && !(max === 1 && found.length === 1)) {
      this.spend(1);
      let below: ChildNode | null = null;
      if (isTag(node)) {
        this.#test(query, node, max, found);
        if (node.name !== 'template') below = node.firstChild;
      }
      node = below ?? following(node, root);
    }
  }

  #gather(root: Root, isSilent: (element: Element) => boolean, lineBreak = ''): string {
    let text = '';
    let node = root.firstChild as ChildNode | null;
    while (node !== null) {
      this.spend(1);
      let below: ChildNode | null = null;
      if (isText(node)) {
        this.spend(node.data.length);
        text += node.data;
      } else if (isTag(node) && !isSilent(node)) {
        below = node.firstChild;
        if (node.name === 'br') text += lineBreak;
      }
      node = below ?? following(node, root);
    }
    return text;
  }

  /** Lists are walked up to some place in them: on average the half. */
  #counted<T>(nodes: T[]): T[] {
    this.spend(nodes.length / 2);
    return nodes;
  }
}

/** The next node in the order of the document that is not below `node`; null at the end of `root`. */
function following(node: ChildNode, root: Root): ChildNode | null {
  let at: ChildNode | Root | null = node;
  while (at !== null && at !== root) {
    if (at.nextSibling !== null) return at.nextSibling;
    at = at.parent as Root | null;
  }
  return null;
}

/** Text in brackets, quotes and `:contains()` may be anything. */
const ANY_TEXT = /\[[^\]]*\]|"[^"]*"|'[^']*'|:i?contains\([^)]*\)|\\./gi;

/** What browsers refuse and the parser takes: it reads `h1..title` as a class of the name `.title`, which no page has. */
function checkSelector(css: string): void {
  const plain = css.replace(ANY_TEXT, 'x');
  const [, mark, next] = /([.#])([^\w\-\u0080-\uffff]|$)/.exec(plain) ?? [];
  if (mark) throw new Error(next ? `${mark} is followed by ${next}` : `there is no name after ${mark}`);
  if (plain.includes('@')) throw new Error('@attribute must be the last part');
  const [, last] = /([>+~])\s*(?:,|$)/.exec(plain) ?? [];
  if (last) throw new Error(`nothing follows ${last}`);
}
