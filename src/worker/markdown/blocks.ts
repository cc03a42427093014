/** Markdown of a page, in characters: a book of 500 pages, and with its escapes it fits into a record. */
export const MARKDOWN_CHARS_MAX = 1_000_000;
/** Lists and quotes inside each other; deeper ones are written flat, or every line would start with a mile of spaces. */
const MARKDOWN_NESTING_MAX = 16;

/** What every line of a quote or an item begins with. */
interface Container {
  /** The marker, until the first line has it. */
  first: string | null;
  rest: string;
}

/** Blocks below each other, inside quotes and items. */
export class BlockWriter {
  readonly #pieces: string[] = [];
  readonly #containers: Container[] = [];
  #length = 0;
  #gap: 1 | 2 = 2;
  /** How many containers are around a line across that waits for what is below it, or null. */
  #ruleDepth: number | null = null;

  get isFull(): boolean {
    return this.#length >= MARKDOWN_CHARS_MAX;
  }

  /** False when it is too deep: its content then belongs to what it is in. */
  open(first: string, rest: string): boolean {
    if (this.#containers.length >= MARKDOWN_NESTING_MAX) return false;
    this.#containers.push({ first, rest });
    return true;
  }

  /** Whether anything was written inside. */
  close(): boolean {
    const isUsed = this.#containers.pop()?.first === null;
    // At the end of an item it would divide the list.
    if (this.#ruleDepth !== null && this.#ruleDepth > this.#containers.length) this.#ruleDepth = null;
    if (!isUsed) this.#gap = 2;
    return isUsed;
  }

  /** The next block follows without an empty line. */
  tighten(): void {
    this.#gap = 1;
  }

  /** A line across, once there is something above and below it. */
  rule(): void {
    this.#ruleDepth = this.#length > 0 ? this.#containers.length : null;
  }

  write(block: string): void {
    if (this.#ruleDepth !== null) this.#writeRule(this.#ruleDepth);
    if (this.isFull) return;
    let between = '';
    if (this.#length > 0) between = this.#gap === 1 ? '\n' : `\n${this.#emptyLine()}\n`;
    this.#gap = 2;
    const text = this.#containers.length === 0 ? block : this.#indent(block);
    this.#pieces.push(between, text);
    this.#length += between.length + text.length;
  }

  /** It stands above the lists and quotes that were opened after it. */
  #writeRule(depth: number): void {
    this.#ruleDepth = null;
    const inner = this.#containers.splice(depth);
    this.#gap = 2;
    this.write('---');
    this.#containers.push(...inner);
  }

  end(): string {
    const text = this.#pieces.join('');
    return text.length > MARKDOWN_CHARS_MAX ? text.slice(0, MARKDOWN_CHARS_MAX) : text;
  }

  /** Between two blocks stands what both are in. */
  #emptyLine(): string {
    let line = '';
    for (const { first, rest } of this.#containers) {
      if (first !== null) break;
      line += rest;
    }
    return line.trimEnd();
  }

  #indent(block: string): string {
    let first = '';
    let rest = '';
    for (const container of this.#containers) {
      first += container.first ?? container.rest;
      rest += container.rest;
      container.first = null;
    }
    if (!block.includes('\n')) return first + block;
    const empty = rest.trimEnd();
    // A page of short lines deep inside lists must not become a hundred times as long.
    const room = MARKDOWN_CHARS_MAX - this.#length;
    const lines = block.slice(0, room).split('\n', Math.ceil(room / (rest.length + 1)) + 1);
    return (
      first + lines.map((line, index) => (index === 0 ? line : line === '' ? empty : rest + line)).join('\n')
    );
  }
}
