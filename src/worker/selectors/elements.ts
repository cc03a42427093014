import { endsName } from '../page/html-tags.ts';

/** Element names as small numbers, with what htmlparser2 knows about each: no tag name is sliced to be compared. */

export const VOID = 1;
export const SVG = 2;
export const MATH = 4;
/** Inside SVG or MathML, HTML rules hold again below these. */
export const INTEGRATION = 8;
export const CONTEXT = SVG | MATH | INTEGRATION;
/** Text up to the end tag, with character references. */
export const RCDATA = 16;
/** Text up to the end tag, as it stands. */
export const RAW = 32;
/** Text up to the end of the document. */
export const PLAIN = 64;
/** Its text is no text of the elements around it. */
export const SILENT = 128;

const words = (text: string) => text.split(' ');

const TRAITS: [number, string[]][] = [
  [
    VOID,
    words(
      'area base basefont br col command embed frame hr img input isindex keygen link meta param source track wbr',
    ),
  ],
  [SVG, ['svg']],
  [MATH, ['math']],
  [INTEGRATION, words('mi mo mn ms mtext annotation-xml foreignObject desc title')],
  [RCDATA, ['title', 'textarea']],
  [RAW, words('script style iframe noembed noframes xmp')],
  [PLAIN, ['plaintext']],
  [SILENT, ['script', 'style']],
];

export const TEXT_ONLY = words('script style title textarea iframe noembed noframes xmp plaintext');

/** A start tag of the left closes elements of the right that are the innermost open ones. */
const CLOSES: [string, string][] = [
  ['tr', 'tr th td'],
  ['th', 'th'],
  ['td', 'thead th td'],
  ['body', 'head script'],
  ['a', 'a'],
  ['li', 'li'],
  ['h1 h2 h3 h4 h5 h6', 'h1 h2 h3 h4 h5 h6 p'],
  ['select input output button datalist textarea', 'option optgroup select button datalist textarea'],
  ['option', 'option'],
  ['optgroup', 'optgroup option'],
  ['dd dt', 'dd dt'],
  ['rt rp', 'rt rp'],
  ['tbody tfoot', 'thead tbody'],
  ['p address article aside blockquote details div dl fieldset figcaption figure footer form header', 'p'],
  ['hr main nav ol pre section table ul', 'p'],
];

/** In SVG these names get their capitals back, and then no type selector of an HTML page matches them. */
const SVG_NAMES = words(
  'altGlyph altGlyphDef altGlyphItem animateColor animateMotion animateTransform clipPath feBlend feColorMatrix ' +
    'feComponentTransfer feComposite feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight ' +
    'feDropShadow feFlood feFuncA feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology ' +
    'feOffset fePointLight feSpecularLighting feSpotLight feTile feTurbulence foreignObject glyphRef ' +
    'linearGradient radialGradient textPath',
);

/** Names that need no treatment but are frequent: what is not here costs a slice and a Map. */
const FREQUENT = words(
  'span b i em strong small code u s q sub sup abbr cite mark time label html noscript template picture video ' +
    'audio canvas object map caption colgroup legend summary dialog bdi bdo del ins kbd samp var data meter ' +
    'progress slot ruby center font path g use rect circle line polyline polygon text tspan defs symbol image',
);

const SLOTS = 1024;
/** Keys of so many characters, 7 bits each, tell names apart without a look at them: most tags have such a name. */
const EXACT = 4;

const mix = (key: number, code: number) => ((key << 7) + (key >>> 21) + (code < 65 ? code : code | 32)) | 0;
const slotOf = (key: number) => Math.imul(key, 0x9e3779b1) >>> 22;

export class ElementNames {
  /** Ids from here on are of names met on the page alone, with no traits. */
  readonly known: number;
  readonly traits: Int32Array;
  readonly closes: Int32Array;
  readonly bit: Int32Array;
  /** The id of the name as SVG writes it; the same id where nothing changes. */
  readonly svg: Int32Array;
  /** Where the name last read ends. */
  end = 0;
  readonly #names: string[] = [];
  readonly #ids = new Map<string, number>();
  readonly #met = new Map<string, number>();
  readonly #slots = new Int16Array(SLOTS).fill(-1);
  readonly #keys = new Int32Array(SLOTS);

  constructor(extra: Iterable<string>) {
    for (const [, names] of TRAITS) for (const name of names) this.#add(name);
    for (const name of [...CLOSES.flat().flatMap(words), ...SVG_NAMES, ...FREQUENT, ...extra])
      this.#add(name);
    for (const name of SVG_NAMES) this.#add(name.toLowerCase());
    this.known = this.#names.length;
    this.traits = new Int32Array(this.known);
    this.closes = new Int32Array(this.known);
    this.bit = new Int32Array(this.known);
    this.svg = Int32Array.from(this.#names, (_, id) => id);
    for (const [trait, names] of TRAITS) for (const name of names) this.traits[this.idOf(name)]! |= trait;
    for (const name of SVG_NAMES) this.svg[this.idOf(name.toLowerCase())] = this.idOf(name);
    let bits = 0;
    for (const [closing, closed] of CLOSES) {
      for (const name of words(closed)) {
        const id = this.idOf(name);
        if (this.bit[id] === 0) this.bit[id] = 1 << bits++;
        for (const by of words(closing)) this.closes[this.idOf(by)]! |= this.bit[id]!;
      }
    }
  }

  #add(name: string): void {
    if (this.#ids.has(name)) return;
    this.#ids.set(name, this.#names.length);
    // Other characters could pass for each other once the case bit is set.
    if (/^[\0-@a-z]+$/.test(name)) {
      let key = 0;
      for (let at = 0; at < name.length; at++) key = mix(key, name.charCodeAt(at));
      let slot = slotOf(key);
      while (this.#slots[slot] !== -1) slot = (slot + 1) & (SLOTS - 1);
      this.#slots[slot] = this.#names.length;
      this.#keys[slot] = key;
    }
    this.#names.push(name);
  }

  /** The id of a name in lower case; a new one when it was never met. */
  idOf(name: string): number {
    const id = this.#ids.get(name) ?? this.#met.get(name);
    if (id !== undefined) return id;
    const fresh = this.known + this.#met.size;
    this.#met.set(name, fresh);
    return fresh;
  }

  nameOf(id: number): string {
    return this.#names[id] ?? '';
  }

  /** Slices keep their page alive. */
  forgetMet(): void {
    if (this.#met.size > 0) this.#met.clear();
  }

  /** The id of the name that begins at `start`. */
  read(html: string, start: number): number {
    const { length } = html;
    let at = start;
    let key = 0;
    let all = 0;
    for (; at < length; at++) {
      const code = html.charCodeAt(at);
      if (code <= 62 && endsName(code)) break;
      key = mix(key, code);
      all |= code;
    }
    this.end = at;
    // Unicode has its own lower case: the Kelvin sign is a k.
    if (all < 128) {
      for (let slot = slotOf(key); ; slot = (slot + 1) & (SLOTS - 1)) {
        const id = this.#slots[slot]!;
        if (id === -1) break;
        if (this.#keys[slot] === key && (at - start <= EXACT || isName(html, start, at, this.#names[id]!)))
          return id;
      }
    }
    return this.idOf(html.slice(start, at).toLowerCase());
  }
}

/** Whether the ASCII text from start to end is `name` but for case. */
export function isName(html: string, start: number, end: number, name: string): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) {
    const code = html.charCodeAt(start + i);
    const wanted = name.charCodeAt(i);
    // Only letters have a case: without the range, a control character would pass for a digit.
    if (code !== wanted && ((code | 32) !== wanted || wanted < 97 || wanted > 122)) return false;
  }
  return true;
}
