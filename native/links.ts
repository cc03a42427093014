/**
 * Finds the links of a page in its bytes, and knows which of them this worker has reported, for
 * src/worker/native-links/native-links.ts. In AssemblyScript, compiled by scripts/build/build-native.ts and kept in links-code.ts
 * beside that; a test compiles it again and compares.
 *
 * It steps over markup as the HTML standard tokenises it, without a tree. The page is in UTF-8, at `PAGE`, and zeros
 * follow it: no byte of a name, a quote or white space is 0, so that most loops need not ask for the end.
 */

/**
 * Where found values are written: kind, start and end of the href, start and end of the rel (-1: none), and what is known of
 * the href on the way.
 */
const FOUND: usize = 0x10000;
const FOUND_MAX: i32 = 1024;
const FOUND_BYTES: usize = 24;
const HASH_AT: usize = 20;
/** Of each generation of remembered links: its slots, and behind them its records. */
const GENERATIONS: usize = 0x20000;
const SLOTS_BYTES: usize = 0x80000;
const RECORDS_BYTES: usize = 0x400000;
const GENERATION_BYTES: usize = SLOTS_BYTES + RECORDS_BYTES;
const PAGE: usize = GENERATIONS + 2 * GENERATION_BYTES;

const LINK: i32 = 1;
const REL_LINK: i32 = 2;
const BASE: i32 = 3;
const RAW: i32 = 4;
const TITLE: i32 = 5;
const PLAINTEXT: i32 = 6;
const FOREIGN: i32 = 7;

const DOUBLE_QUOTE: u32 = 34;
const SINGLE_QUOTE: u32 = 39;
const DASH: u32 = 45;
const SLASH: u32 = 47;
const LESS: u32 = 60;
const EQUALS: u32 = 61;
const GREATER: u32 = 62;

// The scan of one page, which may be left and continued.
let end: usize = PAGE;
let at: usize = 0;
let foreignDepth: i32 = 0;
let nextSingleQuote: usize = 0;

// The tag that was read last.
let hrefStart: usize = 0;
let hrefEnd: usize = 0;
let relStart: usize = 0;
let relEnd: usize = 0;
let selfClosing: bool = false;

@inline
function isSpace(code: u32): bool {
  return code <= 32 && (code == 32 || (code - 9 <= 4 && code != 11));
}

@inline
function isLetter(code: u32): bool {
  return (code | 32) - 97 <= 25;
}

@inline
function endsName(code: u32): bool {
  return code <= GREATER && (code == GREATER || code == SLASH || isSpace(code));
}

@inline
function byteAt(place: usize): u32 {
  return load<u8>(place);
}

/** Where the byte stands next, or 0. */
function find(code: u32, from: usize): usize {
  const wanted = i8x16.splat(<i8>code);
  for (let place = from; place < end; place += 16) {
    const mask = i8x16.bitmask(i8x16.eq(v128.load(place), wanted));
    if (mask != 0) {
      const found = place + <usize>ctz(mask);
      return found < end ? found : 0;
    }
  }
  return 0;
}

/** Where the two bytes stand next to each other, or 0. */
function findPair(first: u32, second: u32, from: usize): usize {
  let place = find(first, from);
  while (place != 0) {
    if (byteAt(place + 1) == second) return place;
    place = find(first, place + 1);
  }
  return 0;
}

/** Up to eight letters in any case: the case bit may be set, because a name has letters only. */
@inline
function isName(place: usize, name: u64, length: u32): bool {
  const mask: u64 = <u64>-1 >> (64 - 8 * length);
  return ((load<u64>(place) | 0x2020202020202020) & mask) == name;
}

const A: u64 = 0x61;
const AREA: u64 = 0x61657261;
const LINK_NAME: u64 = 0x6b6e696c;
const BASE_NAME: u64 = 0x65736162;
const SCRIPT: u64 = 0x747069726373;
const STYLE: u64 = 0x656c797473;
const TITLE_NAME: u64 = 0x656c746974;
const TEXTAREA: u64 = 0x6165726174786574;
const IFRAME: u64 = 0x656d61726669;
const NOEMBED: u64 = 0x6465626d656f6e;
const NOFRAMES: u64 = 0x73656d6172666f6e;
const XMP: u64 = 0x706d78;
const PLAINTEX: u64 = 0x7865746e69616c70;
const SVG: u64 = 0x677673;
const MATH: u64 = 0x6874616d;
const HREF: u64 = 0x66657268;
const REL: u64 = 0x6c6572;

/** What the element means here; 0 for most. */
function kindOf(name: usize, length: usize): i32 {
  if (length == 1) return isName(name, A, 1) ? LINK : 0;
  if (length == 3) return isName(name, SVG, 3) ? FOREIGN : isName(name, XMP, 3) ? RAW : 0;
  if (length == 4) {
    if (isName(name, AREA, 4)) return LINK;
    if (isName(name, LINK_NAME, 4)) return REL_LINK;
    if (isName(name, BASE_NAME, 4)) return BASE;
    return isName(name, MATH, 4) ? FOREIGN : 0;
  }
  if (length == 5) return isName(name, TITLE_NAME, 5) ? TITLE : isName(name, STYLE, 5) ? RAW : 0;
  if (length == 6) return isName(name, SCRIPT, 6) || isName(name, IFRAME, 6) ? RAW : 0;
  if (length == 7) return isName(name, NOEMBED, 7) ? RAW : 0;
  if (length == 8) return isName(name, TEXTAREA, 8) || isName(name, NOFRAMES, 8) ? RAW : 0;
  if (length == 9) return isName(name, PLAINTEX, 8) && (byteAt(name + 8) | 32) == 0x74 ? PLAINTEXT : 0;
  return 0;
}

function endOfComment(from: usize): usize {
  if (byteAt(from) == GREATER && from < end) return from + 1;
  if (byteAt(from) == DASH && byteAt(from + 1) == GREATER && from + 1 < end) return from + 2;
  let place = from;
  while (true) {
    place = findPair(DASH, DASH, place);
    if (place == 0) return 0;
    place += 2;
    while (byteAt(place) == DASH) place++;
    if (byteAt(place) == GREATER) return place + 1;
    if (byteAt(place) == 33 && byteAt(place + 1) == GREATER) return place + 2;
  }
}

/** `from` is a `<` that no tag name follows. Where the document goes on; 0 when the rest is swallowed. */
function endOfMarkup(from: usize, isForeign: bool): usize {
  const next = byteAt(from + 1);
  if (next != 33 && next != 63 && next != SLASH) return from + 1;
  if (load<u16>(from + 2) == 0x2d2d && next == 33) return endOfComment(from + 4);
  // `![CDATA[`
  if (isForeign && load<u64>(from + 1) == 0x5b41544144435b21) {
    let place = findPair(93, 93, from + 9);
    while (place != 0 && byteAt(place + 2) != GREATER) place = findPair(93, 93, place + 1);
    return place == 0 ? 0 : place + 3;
  }
  const close = find(GREATER, from + 2);
  return close == 0 ? 0 : close + 1;
}

/** Whether the end tag of the element begins here, with its `</`. */
@inline
function isEndTag(place: usize, name: usize, length: usize): bool {
  for (let index: usize = 0; index < length; index++)
    if ((byteAt(place + 2 + index) | 32) != (byteAt(name + index) | 32)) return false;
  return endsName(byteAt(place + 2 + length));
}

/** Where the end tag of a raw text element begins, or 0; `name` is where its name stands. */
function endOfRawText(from: usize, name: usize, length: usize): usize {
  let place = findPair(LESS, SLASH, from);
  while (place != 0) {
    if (isEndTag(place, name, length)) {
      const isEscaped = length == 6 && isName(name, SCRIPT, 6) && hasCommentStart(from, place);
      return isEscaped ? endOfEscapedScript(from) : place;
    }
    place = findPair(LESS, SLASH, place + 2);
  }
  return 0;
}

@inline
function isCommentStart(place: usize): bool {
  return load<u32>(place) == 0x2d2d213c;
}

function hasCommentStart(from: usize, until: usize): bool {
  let place = find(LESS, from);
  while (place != 0 && place + 4 <= until) {
    if (isCommentStart(place)) return true;
    place = find(LESS, place + 1);
  }
  return false;
}

/** Between `<!--` and `-->` a script may hold scripts in quotes: those end without ending it. */
function endOfEscapedScript(from: usize): usize {
  let isComment = false;
  let isScriptInside = false;
  let place = from;
  while (place < end) {
    const code = byteAt(place);
    if (code == LESS) {
      if (isCommentStart(place)) {
        isComment = true;
        // `<!-->` begins and ends it.
        place += 2;
        continue;
      }
      const isClosing = byteAt(place + 1) == SLASH;
      const name = place + (isClosing ? 2 : 1);
      if (isName(name, SCRIPT, 6) && endsName(byteAt(name + 6))) {
        if (!isClosing) {
          if (isComment) isScriptInside = true;
        } else if (isScriptInside) {
          isScriptInside = false;
        } else {
          return place;
        }
        place = name + 6;
        continue;
      }
    } else if (code == DASH && byteAt(place + 1) == DASH && byteAt(place + 2) == GREATER) {
      isComment = false;
      isScriptInside = false;
      place += 3;
      continue;
    }
    place++;
  }
  return 0;
}

/**
 * `readTag` for tags whose attributes do not matter, without a look at most bytes. When the first `>` follows a double
 * quote that cannot open a value, and there is no single quote, then no value is open and the tag ends there.
 */
function skipTag(from: usize): usize {
  if (byteAt(from) == GREATER) return from + 1;
  const close = find(GREATER, from);
  if (close == 0) return 0;
  if (nextSingleQuote < from) {
    const next = find(SINGLE_QUOTE, from);
    nextSingleQuote = next == 0 ? end : next;
  }
  let last = close - 1;
  if (byteAt(last) == SLASH) last--;
  if (byteAt(last) == 32) last--;
  const before = byteAt(last - 1);
  const isClosed = byteAt(last) == DOUBLE_QUOTE && before != EQUALS && !isSpace(before);
  return isClosed && last > from && nextSingleQuote > close ? close + 1 : readTag(from);
}

/** `from` is the end of the tag name. The place after `>`, or 0 when the tag never ends. */
function readTag(from: usize): usize {
  hrefStart = 0;
  relStart = 0;
  let place = from;
  while (true) {
    const gap = place;
    let code = byteAt(place);
    while (code == SLASH || isSpace(code)) code = byteAt(++place);
    if (code == GREATER) {
      selfClosing = place > gap && byteAt(place - 1) == SLASH;
      return place + 1;
    }
    place = readAttribute(place);
    if (place == 0) return 0;
  }
}

/** The first attribute of a name wins. */
function readAttribute(name: usize): usize {
  // The first byte belongs to the name whatever it is, even `=`.
  let place = name + 1;
  let code = byteAt(place);
  while (place < end && code != EQUALS && !endsName(code)) code = byteAt(++place);
  const length = place - name;
  while (isSpace(code)) code = byteAt(++place);
  let valueStart = place;
  let valueEnd = place;
  if (code == EQUALS) {
    code = byteAt(++place);
    while (isSpace(code)) code = byteAt(++place);
    valueStart = place;
    if (code == DOUBLE_QUOTE || code == SINGLE_QUOTE) {
      valueStart = place + 1;
      valueEnd = find(code, valueStart);
      if (valueEnd == 0) return 0;
      place = valueEnd + 1;
    } else {
      while (place < end && code != GREATER && !isSpace(code)) code = byteAt(++place);
      valueEnd = place;
    }
  }
  if (place >= end) return 0;
  if (length == 4 && hrefStart == 0 && isName(name, HREF, 4)) {
    hrefStart = valueStart;
    hrefEnd = valueEnd;
  } else if (length == 3 && relStart == 0 && isName(name, REL, 3)) {
    relStart = valueStart;
    relEnd = valueEnd;
  }
  return place;
}

/** A page of this size is there, with zeros behind it (`SLACK_BYTES` in native-links.ts): the next scan begins at its start. */
export function begin(size: i32): void {
  end = PAGE + <usize>size;
  at = PAGE;
  foreignDepth = 0;
  nextSingleQuote = 0;
}

/**
 * Goes on until the page ends (`isOver`) or there is no more room for what is found, and returns how many were found:
 * the hrefs of links that are not remembered for the origin, and of bases. Origin 0 is none: then all are found.
 */
export function scan(origin: i32, seed: i32): i32 {
  let count: i32 = 0;
  while (at != 0 && count < FOUND_MAX) {
    const open = byteAt(at) == LESS && at < end ? at : find(LESS, at);
    at = 0;
    if (open == 0) break;
    const isClosing = byteAt(open + 1) == SLASH;
    const name = open + (isClosing ? 2 : 1);
    if (!isLetter(byteAt(name))) {
      at = endOfMarkup(open, foreignDepth > 0);
      continue;
    }
    let nameEnd = name + 1;
    while (nameEnd < end && !endsName(byteAt(nameEnd))) nameEnd++;
    const length = nameEnd - name;
    const kind = length <= 9 ? kindOf(name, length) : 0;
    if (kind == 0 || (isClosing && kind != FOREIGN)) {
      at = skipTag(nameEnd);
      continue;
    }
    at = readTag(nameEnd);
    if (at == 0) break;
    if (kind == FOREIGN) {
      if (isClosing) foreignDepth = max(0, foreignDepth - 1);
      else if (!selfClosing) foreignDepth++;
    } else if (kind == PLAINTEXT) {
      at = 0;
    } else if (kind == TITLE) {
      // Of a picture it holds markup.
      if (foreignDepth == 0) at = endOfRawText(at, name, length);
    } else if (kind == RAW) {
      // In an SVG `<style/>` is empty; elsewhere the slash means nothing and the text runs to the end tag.
      if (foreignDepth == 0 || !selfClosing) at = endOfRawText(at, name, length);
    } else if (hrefStart != 0) {
      const to = FOUND + <usize>count * FOUND_BYTES;
      store<i32>(to, kind);
      store<i32>(to + 4, <i32>(hrefStart - PAGE));
      store<i32>(to + 8, <i32>(hrefEnd - PAGE));
      store<i32>(to + 12, relStart == 0 ? -1 : <i32>(relStart - PAGE));
      store<i32>(to + 16, <i32>(relEnd - PAGE));
      count++;
    }
  }
  return origin == 0 ? count : keepNew(count, origin, seed);
}

/**
 * Leaves out what is remembered. In steps over all that was found, because each look at the table waits for memory: looks that
 * do not depend on each other wait together.
 */
function keepNew(count: i32, origin: i32, seed: i32): i32 {
  const stop = FOUND + <usize>count * FOUND_BYTES;
  let touched: u32 = 0;
  for (let found = FOUND; found < stop; found += FOUND_BYTES) {
    const start = load<i32>(found + 4);
    const hash = hashOf(PAGE + <usize>start, min(load<i32>(found + 8) - start, TEXT_BYTES_MAX), seed);
    store<u32>(found + HASH_AT, hash);
    touched += load<u32>(young + (<usize>(hash & youngMask) << 2));
  }
  for (let found = FOUND; found < stop; found += FOUND_BYTES) {
    const held = load<u32>(young + (<usize>(load<u32>(found + HASH_AT) & youngMask) << 2));
    touched += load<u32>(young + SLOTS_BYTES + (<usize>(held & 0xffffff) << 3));
  }
  // Or the compiler would leave the looks out.
  lastTouched = touched;
  let kept = FOUND;
  for (let found = FOUND; found < stop; found += FOUND_BYTES) {
    const start = load<i32>(found + 4);
    const length = load<i32>(found + 8) - start;
    const text = PAGE + <usize>start;
    if (load<i32>(found) != BASE && isRemembered(load<u32>(found + HASH_AT), text, length, origin)) continue;
    memory.copy(kept, found, FOUND_BYTES);
    kept += FOUND_BYTES;
  }
  return <i32>((kept - FOUND) / FOUND_BYTES);
}

let lastTouched: u32 = 0;

export function isOver(): bool {
  return at == 0;
}

/*
 * Remembered links, in two generations: when the younger one is full, the older one is forgotten. A record has the hash,
 * the origin, the length and the text of a link, one record behind the other, and a slot says where one begins: 8 bits of
 * its hash above 24 of its place in units of 8 bytes. So a slot of another link is passed over without a look at its record.
 * Slots are few at first, since most jobs see few links.
 */
const HEAD_BYTES: usize = 12;
/** Longer ones are rare, and found anew each time. */
const TEXT_BYTES_MAX: i32 = 2048;
const SLOTS_FIRST: u32 = 1024;
const SLOTS_MAX: u32 = 131072;

let young: usize = GENERATIONS;
let old: usize = GENERATIONS + GENERATION_BYTES;
let youngMask: u32 = SLOTS_FIRST - 1;
let oldMask: u32 = SLOTS_FIRST - 1;
let youngCount: u32 = 0;
/** The first 8 bytes are left out: a slot with 0 is free. */
let youngEnd: usize = GENERATIONS + SLOTS_BYTES + 8;

/** The bytes at a place, up to eight, as many as are left. */
@inline
function wordAt(place: usize, left: i32): u64 {
  const word = load<u64>(place);
  return left >= 8 ? word : word & ((<u64>1 << (<u64>left << 3)) - 1);
}

@inline
function hashOf(text: usize, length: i32, seed: i32): u32 {
  let hash: u64 = (<u64>(<u32>seed) << 32) ^ <u64>(<u32>length);
  for (let index: i32 = 0; index < length; index += 8) {
    hash = (hash ^ wordAt(text + <usize>index, length - index)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  hash *= 0xbf58476d1ce4e5b9;
  return <u32>(hash >> 32);
}

function isIn(generation: usize, mask: u32, hash: u32, text: usize, length: i32, origin: i32): bool {
  const records = generation + SLOTS_BYTES;
  const tag = hash >>> 24;
  let slot = hash & mask;
  while (true) {
    const held = load<u32>(generation + (<usize>slot << 2));
    if (held == 0) return false;
    slot = (slot + 1) & mask;
    if (held >>> 24 != tag) continue;
    const record = records + (<usize>(held & 0xffffff) << 3);
    if (load<u32>(record) != hash || load<i32>(record + 4) != origin || load<i32>(record + 8) != length) continue;
    let index: i32 = 0;
    while (
      index < length &&
      load<u64>(record + HEAD_BYTES + <usize>index) == wordAt(text + <usize>index, length - index)
    )
      index += 8;
    if (index >= length) return true;
  }
}

function isRemembered(hash: u32, text: usize, length: i32, origin: i32): bool {
  if (length > TEXT_BYTES_MAX) return false;
  return isIn(young, youngMask, hash, text, length, origin) || isIn(old, oldMask, hash, text, length, origin);
}

export function knows(start: i32, stop: i32, origin: i32, seed: i32): bool {
  const text = PAGE + <usize>start;
  return isRemembered(hashOf(text, stop - start, seed), text, stop - start, origin);
}

/** `countMax`: how many links a generation holds. */
export function remember(start: i32, stop: i32, origin: i32, seed: i32, countMax: i32): void {
  const length = stop - start;
  if (length > TEXT_BYTES_MAX) return;
  const bytes = (HEAD_BYTES + <usize>length + 15) & ~7;
  if (youngCount >= <u32>countMax || youngEnd + bytes > young + GENERATION_BYTES) forgetOlder();
  if (youngMask + 1 < SLOTS_MAX && youngCount * 5 >= (youngMask + 1) * 2) addSlots();
  const text = PAGE + <usize>start;
  const hash = hashOf(text, length, seed);
  const record = youngEnd;
  store<u32>(record, hash);
  store<i32>(record + 4, origin);
  store<i32>(record + 8, length);
  for (let index: i32 = 0; index < length; index += 8)
    store<u64>(record + HEAD_BYTES + <usize>index, wordAt(text + <usize>index, length - index));
  youngEnd += bytes;
  youngCount++;
  putSlot(hash, record);
}

function putSlot(hash: u32, record: usize): void {
  let slot = hash & youngMask;
  while (load<u32>(young + (<usize>slot << 2)) != 0) slot = (slot + 1) & youngMask;
  const place = <u32>((record - young - SLOTS_BYTES) >> 3);
  store<u32>(young + (<usize>slot << 2), ((hash >>> 24) << 24) | place);
}

function addSlots(): void {
  memory.fill(young, 0, <usize>(youngMask + 1) << 2);
  youngMask = ((youngMask + 1) << 2) - 1;
  if (youngMask >= SLOTS_MAX) youngMask = SLOTS_MAX - 1;
  memory.fill(young, 0, <usize>(youngMask + 1) << 2);
  for (let record = young + SLOTS_BYTES + 8; record < youngEnd; ) {
    putSlot(load<u32>(record), record);
    record += (HEAD_BYTES + <usize>load<i32>(record + 8) + 15) & ~7;
  }
}

function forgetOlder(): void {
  const forgotten = old;
  old = young;
  oldMask = youngMask;
  young = forgotten;
  youngMask = SLOTS_FIRST - 1;
  youngCount = 0;
  youngEnd = young + SLOTS_BYTES + 8;
  memory.fill(young, 0, SLOTS_BYTES);
}
