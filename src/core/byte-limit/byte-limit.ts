/**
 * A limit of bytes holds for what is in flight, too: nobody knows how large a page is before it has come, so each one
 * that is out counts as a mean one. A job begins with few pages at once, and has as many out later as it has learned from.
 */
export interface PageSizes {
  pages: number;
  meanBytes: number;
}

export const NO_SIZES: Readonly<PageSizes> = { pages: 0, meanBytes: 0 };

/** Pages that are out at once while nothing is known of their size. */
const FIRST_PAGES = 4;
/** The last twenty or so pages decide. */
const WEIGHT = 0.05;

export function addSize({ pages, meanBytes }: PageSizes, bytes: number): PageSizes {
  const weight = Math.max(WEIGHT, 1 / (pages + 1));
  return { pages: pages + 1, meanBytes: meanBytes + (bytes - meanBytes) * weight };
}

/** What one page is expected to take of the bytes that are left. */
export function expectedBytes(sizes: PageSizes, bytesLeft: number): number {
  return Math.max(1, sizes.pages === 0 ? bytesLeft / FIRST_PAGES : sizes.meanBytes);
}

/** How many pages may still be sent out. One at least while nothing is out: otherwise the last bytes are never used. */
export function pagesWithin(bytesLeft: number, out: number, sizes: PageSizes): number {
  if (bytesLeft <= 0) return 0;
  const fitting = Math.floor(bytesLeft / expectedBytes(sizes, bytesLeft));
  return Math.max(Math.min(fitting, Math.max(FIRST_PAGES, sizes.pages)) - out, out === 0 ? 1 : 0);
}

/** The bytes of one batch: no request is sent once they are used, or about to be by what is in flight. */
export class BatchBytes {
  readonly #max: number;
  readonly #expected: number;
  #sizes: PageSizes = NO_SIZES;
  #received = 0;
  #inFlight = 0;

  constructor(max: number, tasks: number) {
    this.#max = max;
    this.#expected = max / Math.max(1, tasks);
  }

  /** Whether another request may be sent now. */
  begin(): boolean {
    const each = Math.max(this.#expected, this.#sizes.meanBytes);
    if (this.#received + this.#inFlight * each >= this.#max) return false;
    this.#inFlight++;
    return true;
  }

  end(bytes: number | null): void {
    this.#inFlight--;
    if (bytes === null) return;
    this.#received += bytes;
    this.#sizes = addSize(this.#sizes, bytes);
  }
}
