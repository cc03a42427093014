import { LIMITS } from '../../core/limits.ts';
import { LINKS_CODE } from './links-code.ts';

/**
 * Links in the bytes of a page, and which of them this worker has reported before: the caller of native/links.ts. A page of
 * 24 KB with 33 links takes 10 µs, where a scan of its text and a look at a table of links in JavaScript took 24.
 */

/** As in native/links.ts. */
const FOUND = 0x10000;
const FOUND_INTEGERS = 6;
const FOUND_MAX = 1024;
const PAGE = 0x920000;
/** What may be read behind a page; it must be zero. */
const SLACK_BYTES = 64;
const MEMORY_PAGE_BYTES = 64 * 1024;

/** Larger pages are rare, and each gets memory of its own, so that the shared one stays small: nothing is remembered of them. */
const SHARED_PAGE_BYTES_MAX = 2 * 1024 * 1024;

export const LINK_KINDS = { link: 1, relLink: 2, base: 3 } as const;

/** Whose links are meant, of which epoch. Ids are never given twice, and 0 is none. */
export interface LinkOrigin {
  id: number;
  seed: number;
}

interface NativeExports {
  memory: WebAssembly.Memory;
  begin(size: number): void;
  scan(origin: number, seed: number): number;
  isOver(): number;
  knows(start: number, end: number, origin: number, seed: number): number;
  remember(start: number, end: number, origin: number, seed: number, countMax: number): void;
}

/** `relStart` is -1 where there is no `rel`. Returns false to stop. */
type OnFound = (kind: number, start: number, end: number, relStart: number, relEnd: number) => boolean;

export class NativeLinks {
  readonly #native: NativeExports;
  #bytes: Uint8Array;
  #found: Int32Array;

  constructor() {
    this.#native = instantiate();
    const { buffer } = this.#native.memory;
    this.#bytes = new Uint8Array(buffer);
    this.#found = new Int32Array(buffer, FOUND, FOUND_MAX * FOUND_INTEGERS);
  }

  /** The page that the others speak of, in UTF-8. */
  load(page: Uint8Array): void {
    const needed = PAGE + page.length + SLACK_BYTES;
    if (needed > this.#bytes.length) this.#grow(needed);
    this.#bytes.set(page, PAGE);
    this.#bytes.fill(0, PAGE + page.length, needed);
    this.#native.begin(page.length);
  }

  /** Each href in order; where an origin is given, only those that are not remembered for it. */
  find(origin: LinkOrigin | null, onFound: OnFound): void {
    do {
      const count = this.#native.scan(origin?.id ?? 0, origin?.seed ?? 0);
      const found = this.#found;
      for (let at = 0; at < count * FOUND_INTEGERS; at += FOUND_INTEGERS)
        if (!onFound(found[at]!, found[at + 1]!, found[at + 2]!, found[at + 3]!, found[at + 4]!)) return;
    } while (this.#native.isOver() === 0);
  }

  knows(start: number, end: number, { id, seed }: LinkOrigin): boolean {
    return this.#native.knows(start, end, id, seed) !== 0;
  }

  remember(start: number, end: number, { id, seed }: LinkOrigin): void {
    this.#native.remember(start, end, id, seed, LIMITS.recentUrlsMax);
  }

  #grow(bytes: number): void {
    const { memory } = this.#native;
    memory.grow(Math.ceil((bytes - memory.buffer.byteLength) / MEMORY_PAGE_BYTES));
    this.#bytes = new Uint8Array(memory.buffer);
    this.#found = new Int32Array(memory.buffer, FOUND, FOUND_MAX * FOUND_INTEGERS);
  }
}

let shared: NativeLinks | null = null;
let compiled: WebAssembly.Module | null = null;

/** With the page loaded. All jobs of a worker remember their links in the same place, so its memory is bounded. */
export function linksOf(page: Uint8Array): NativeLinks {
  shared ??= new NativeLinks();
  const links = page.length > SHARED_PAGE_BYTES_MAX ? new NativeLinks() : shared;
  links.load(page);
  return links;
}

/** Not before there is a page: a function that starts must not wait for it. */
function instantiate(): NativeExports {
  compiled ??= new WebAssembly.Module(Buffer.from(LINKS_CODE, 'base64'));
  const { exports } = new WebAssembly.Instance(compiled);
  return {
    memory: exports.memory as NativeExports['memory'],
    begin: exports.begin as NativeExports['begin'],
    scan: exports.scan as NativeExports['scan'],
    isOver: exports.isOver as NativeExports['isOver'],
    knows: exports.knows as NativeExports['knows'],
    remember: exports.remember as NativeExports['remember'],
  };
}
