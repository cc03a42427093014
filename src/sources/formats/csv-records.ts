import { CsvError, type Options, type Parser, parse } from 'csv-parse';
import { LIMITS } from '../../core/limits.ts';
import { BrokenFileError } from '../rows/raw-row.ts';

/** After a malformed row its text is read again: at most this much, plus a multiple of what was read before it. */
const CSV_READ_AGAIN_BYTES = 16 * 1024 * 1024;
const CSV_READ_AGAIN_TIMES = 4;

/** A row, or why the line in which one began is passed over. */
interface CsvItem {
  record: string[] | { reason: string };
  /** Bytes and line ends before the next row. */
  end: number;
  lines: number;
}

/** Where the text begins within its file. `lines` is NaN where they were not counted. */
interface CsvStart {
  offset: number;
  lines: number;
  lineEnd: number;
}

const RETURN = 13;
const NEWLINE = 10;
const QUOTE = '"';

class MalformedRow extends Error {
  /** Never shown, though streams ask for it: making it would take most of the time of a file of such rows. */
  override readonly stack = '';
  /** How far it was read in vain. */
  readonly bytes: number;

  constructor(reason: string, bytes: number) {
    super(reason);
    this.bytes = bytes;
  }
}

const TOO_LARGE = `larger than ${LIMITS.sourceRowBytesMax} bytes (is a quote unclosed?)`;

/**
 * Piece by piece, so that everything before a mistake comes out: a stream drops what it holds when it fails. A row that
 * is none costs the line in which it began: the text after that line is read again, as far as it was read in vain.
 */
export async function* readRecords(
  chunks: AsyncIterable<Buffer>,
  options: Options,
  start: CsvStart,
): AsyncIterable<CsvItem> {
  const reader = new RecordReader(options, start);
  try {
    for await (const chunk of chunks) yield* reader.read(chunk);
    yield* reader.end();
  } finally {
    reader.close();
  }
}

class RecordReader {
  readonly #options: Options;
  readonly #lineEnd: number;
  #parser: Parser;
  #failure: unknown = null;
  #items: CsvItem[] = [];
  /** Text from the row that is being read on; `#at` is where that begins in it. */
  #text: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Bytes of the file before `#text`, before the text of the parser, and line ends before the row. */
  #offset: number;
  #parserOffset: number;
  #lines: number;
  #readAgain = 0;
  /** Why the rest of the line is passed over. */
  #passing: string | null = null;

  constructor(options: Options, { offset, lines, lineEnd }: CsvStart) {
    this.#options = options;
    this.#lineEnd = lineEnd;
    this.#offset = offset;
    this.#parserOffset = offset;
    this.#lines = lines;
    this.#parser = this.#openParser(options);
  }

  async *read(chunk: Buffer): AsyncIterable<CsvItem> {
    const rest = this.#text.subarray(this.#at);
    this.#offset += this.#at;
    this.#text = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.#at = 0;
    let more: Buffer | null = chunk;
    if (this.#passing !== null) more = this.#passLine();
    while (more !== null) {
      await this.#write(more);
      more = this.#afterStep();
      yield* this.#take();
    }
    yield* this.#take();
  }

  async *end(): AsyncIterable<CsvItem> {
    let more: Buffer | null = this.#passing === null ? Buffer.alloc(0) : null;
    while (more !== null) {
      if (more.length > 0) await this.#write(more);
      if (this.#failure === null) await new Promise<void>((resolve) => this.#parser.end(() => resolve()));
      more = this.#afterStep();
      yield* this.#take();
    }
    if (this.#passing === null) return;
    this.#reject(0);
    yield* this.#take();
  }

  close(): void {
    this.#parser.destroy();
  }

  #openParser(options: Options): Parser {
    const take = (record: string[], { bytes }: { bytes: number }) => {
      this.#takeRecord(record, this.#parserOffset + bytes);
      return null;
    };
    const parser = parse({ ...options, on_record: take as NonNullable<Options['on_record']> });
    parser.on('error', (error) => {
      if (parser === this.#parser) this.#failure ??= error;
    });
    return parser;
  }

  #write(text: Buffer): Promise<void> {
    return new Promise((resolve) => this.#parser.write(text, () => resolve()));
  }

  #take(): CsvItem[] {
    const taken = this.#items;
    this.#items = [];
    return taken;
  }

  /** What is thrown here stops the parser at once. */
  #takeRecord(record: string[], end: number): void {
    this.#passEmptyLines();
    const to = end - this.#offset;
    const bytes = to - this.#at;
    if (bytes > LIMITS.sourceRowBytesMax) throw new MalformedRow(TOO_LARGE, bytes);
    if (record.some(hasQuoteAndLines) && !isQuotedWell(record, this.#text.toString('utf8', this.#at, to)))
      throw new MalformedRow('a quote is not closed on its line or by the next quote', bytes);
    this.#lines += this.#countLines(to);
    this.#at = to;
    this.#items.push({ record, end, lines: this.#lines });
  }

  /** What the parser, begun anew, has to read; null when more text is needed first. */
  #afterStep(): Buffer | null {
    this.#passEmptyLines();
    const held = this.#text.length - this.#at;
    // Cells without text are not counted by the parser.
    if (this.#failure === null && held > LIMITS.sourceRowBytesMax)
      this.#failure = new MalformedRow(TOO_LARGE, held);
    if (this.#failure === null) return null;
    const { reason, bytes } = this.#explain(this.#failure, held);
    this.#readAgain += bytes;
    if (this.#readAgain > CSV_READ_AGAIN_BYTES + CSV_READ_AGAIN_TIMES * (this.#offset + this.#at))
      throw new BrokenFileError(`too many rows are not valid CSV, the last${this.#lineName()}: ${reason}`);
    this.#passing = reason;
    return this.#passLine();
  }

  #explain(failure: unknown, held: number): { reason: string; bytes: number } {
    if (failure instanceof MalformedRow) return { reason: failure.message, bytes: failure.bytes };
    if (!(failure instanceof CsvError)) throw failure;
    const bytes = Math.min(held, LIMITS.sourceRowBytesMax);
    if (failure.code === 'CSV_MAX_RECORD_SIZE') return { reason: TOO_LARGE, bytes };
    return { reason: 'a quote is not closed', bytes };
  }

  /** Gives up the row and the rest of its line; a parser begins after that. */
  #passLine(): Buffer | null {
    const found = this.#text.indexOf(this.#lineEnd, this.#at);
    if (found < 0) {
      this.#offset += this.#text.length;
      this.#text = Buffer.alloc(0);
      this.#at = 0;
      return null;
    }
    this.#at = found + 1;
    this.#reject(1);
    this.#passing = null;
    this.#failure = null;
    this.#parser.destroy();
    this.#parserOffset = this.#offset + this.#at;
    this.#parser = this.#openParser({ ...this.#options, bom: false });
    return this.#text.subarray(this.#at);
  }

  #reject(lineEnds: number): void {
    const record = { reason: `not valid CSV${this.#lineName()}: ${this.#passing}` };
    this.#lines += lineEnds;
    this.#items.push({ record, end: this.#offset + this.#at, lines: this.#lines });
  }

  #lineName(): string {
    return Number.isNaN(this.#lines) ? '' : `, from line ${this.#lines + 1} on`;
  }

  #passEmptyLines(): void {
    for (; this.#at < this.#text.length; this.#at++) {
      const byte = this.#text[this.#at];
      if (byte !== NEWLINE && byte !== RETURN) return;
      if (byte === this.#lineEnd) this.#lines++;
    }
  }

  #countLines(to: number): number {
    let count = 0;
    let at = this.#text.indexOf(this.#lineEnd, this.#at);
    for (; at >= 0 && at < to; at = this.#text.indexOf(this.#lineEnd, at + 1)) count++;
    return count;
  }
}

function hasQuoteAndLines(cell: string): boolean {
  return cell.startsWith(QUOTE) && /[\r\n]/.test(cell);
}

/** The parser takes a quote in the middle of a quoted cell for text: over several lines, it was another row's. */
function isQuotedWell(record: string[], raw: string): boolean {
  return record
    .filter(hasQuoteAndLines)
    .every((cell) => raw.includes(`${QUOTE}${cell.replaceAll(QUOTE, QUOTE + QUOTE)}${QUOTE}`));
}
