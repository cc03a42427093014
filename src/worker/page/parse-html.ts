import { type ChildNode, type Document, DomHandler } from 'domhandler';
import { Parser } from 'htmlparser2';

/** Elements inside elements, as in Chromium: deeper ones become siblings. */
export const NESTING_MAX = 512;
/** Elements and texts of a page's tree, 300 bytes each; the rest of the page is not looked at. */
export const NODES_MAX = 400_000;

/** The tree of a page. Elements nested too deep are siblings, as in browsers; a page of too many nodes ends early. */
export function parseHtml(html: string): Document {
  const builder = new TreeBuilder();
  new ShallowParser(builder).end(html);
  return builder.root;
}

class TreeBuilder extends DomHandler {
  /** Between the name of a start tag and its end. */
  inTag = false;

  #nodes = 0;

  get isFull(): boolean {
    return this.#nodes >= NODES_MAX;
  }

  get depth(): number {
    return this.tagStack.length;
  }

  onopentagname(): void {
    this.inTag = true;
  }

  protected override addNode(node: ChildNode): void {
    this.#nodes++;
    super.addNode(node);
  }
}

/**
 * The parser and css-select move their whole stack at each step: a page of 1 MB that is nothing but open tags took
 * 5 s to parse and 10 s to search. An element that has no room is treated like `<br>`: it ends where it begins.
 */
class ShallowParser extends Parser {
  readonly #builder: TreeBuilder;
  #hasRoom = true;
  #inEndTag = false;

  constructor(builder: TreeBuilder) {
    super(builder);
    this.#builder = builder;
  }

  override onopentagname(start: number, endIndex: number): void {
    this.#builder.inTag = false;
    if (this.#builder.isFull) this.pause();
    else super.onopentagname(start, endIndex);
  }

  override onclosetag(start: number, endIndex: number): void {
    this.#inEndTag = true;
    super.onclosetag(start, endIndex);
    this.#inEndTag = false;
  }

  /** Asked before and after the element of a start tag is made; the answers must be the same. */
  protected override isVoidElement(name: string): boolean {
    if (super.isVoidElement(name)) return true;
    if (this.#inEndTag || name === '') return false;
    if (!this.#builder.inTag) this.#hasRoom = this.#builder.depth <= NESTING_MAX;
    return !this.#hasRoom;
  }
}
