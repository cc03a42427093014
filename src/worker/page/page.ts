import { selectAll, selectOne } from 'css-select';
import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';
import { LIMITS } from '../../core/limits.ts';
import type { Meta, ShotRef } from '../../core/model.ts';
import { decodeText, sniffCharset } from '../../core/text/charset.ts';
import { isJsonDeeper } from '../../core/values/nesting.ts';
import { getOwn } from '../../core/values/own-property.ts';
import { parseHtml } from './parse-html.ts';
import { parseSelector } from './parse-selector.ts';
import { foldSpace } from './text.ts';

export interface PageInput {
  url: string;
  status: number;
  contentType: string | null;
  contentTypeHeader: string | null;
  headers: string[];
  body: Buffer;
  route: string | null;
  meta: Meta | null;
  /** Of a page that a browser made. */
  captured?: Record<string, unknown[]>;
  screenshots?: readonly ShotRef[];
}

const NO_CAPTURES: Page['captured'] = {};
const NO_SHOTS: Page['screenshots'] = [];

/** A fetched page. Text and DOM are made when first asked for, once. */
export class Page {
  /** Where the page was found, after redirects. */
  readonly url: string;
  /** Status of the response. */
  readonly status: number;
  /** Media type by the content and the header: `text/html`. */
  readonly contentType: string | null;
  /** Name of the route that took the page. */
  readonly route: string | null;
  /** Other columns of the source row, or what `page.follow` gave. */
  readonly meta: Meta | null;
  /** The bytes of the body, decompressed. */
  readonly body: Buffer;
  /** Data that scripts of the page loaded, by the name of the capture. */
  readonly captured: Readonly<Record<string, readonly unknown[]>>;
  /** Pictures of the page: blobs by their keys. */
  readonly screenshots: readonly ShotRef[];
  readonly #contentTypeHeader: string | null;
  readonly #rawHeaders: string[];
  readonly #followed: { url: string; options: FollowOptions }[] = [];
  #text: string | null = null;
  #textBytes: Buffer | null = null;
  #charset: string | null = null;
  #document: Document | null = null;

  constructor(input: PageInput) {
    this.url = input.url;
    this.status = input.status;
    this.contentType = input.contentType;
    this.route = input.route;
    this.meta = input.meta;
    this.body = input.body;
    this.captured = input.captured ?? NO_CAPTURES;
    this.screenshots = input.screenshots ?? NO_SHOTS;
    this.#contentTypeHeader = input.contentTypeHeader;
    this.#rawHeaders = input.headers;
  }

  /** The body as text, by BOM, header, meta tag or a look at the bytes. */
  get text(): string {
    this.#text ??= decodeText(this.body, this.#charsetOfBody);
    return this.#text;
  }

  /** The text in UTF-8: of most pages that is the body, which is neither decoded nor copied. */
  get textBytes(): Buffer {
    this.#textBytes ??= this.#charsetOfBody === 'utf-8' ? this.body : Buffer.from(this.text);
    return this.#textBytes;
  }

  get #charsetOfBody(): string {
    this.#charset ??= sniffCharset(this.body, this.#contentTypeHeader);
    return this.#charset;
  }

  /** The parsed document, for use with css-select. */
  get document(): Document {
    this.#document ??= parseHtml(this.text);
    return this.#document;
  }

  /** A response header by its name, in any case; the first one when it comes several times. */
  header(name: string): string | null {
    return headerOf(this.#rawHeaders, name);
  }

  /** Every header of that name: some come several times. */
  headersOf(name: string): string[] {
    const wanted = name.toLowerCase();
    return this.#rawHeaders.filter(
      (_, index) => index % 2 === 1 && this.#rawHeaders[index - 1]!.toLowerCase() === wanted,
    );
  }

  /** The body as JSON. Throws when it is not. */
  json(): unknown {
    return JSON.parse(this.text);
  }

  /** The first element that matches a CSS selector. */
  one(css: string): Element | null {
    return selectOne<Document | Element, Element>(parseSelector(css), this.document) ?? null;
  }

  /** All elements that match a CSS selector, in their order. */
  all(css: string): Element[] {
    return selectAll<Document | Element, Element>(parseSelector(css), this.document);
  }

  /** Text of the first element that matches, white space folded. */
  textOf(css: string): string | null {
    const element = this.one(css);
    return element ? textOfElement(element) : null;
  }

  /** An attribute of the first element that matches. */
  attributeOf(css: string, name: string): string | null {
    const element = this.one(css);
    return (element && getOwn(element.attribs, name)) ?? null;
  }

  /** Adds a link, wherever it leads; only the depth limit of the job holds. */
  follow(url: string, options: FollowOptions = {}): void {
    if (typeof url !== 'string') throw new Error(`page.follow needs a URL, got ${typeof url}`);
    this.#followed.push({ url, options: checkedOptions(options) });
  }

  /** Links that `follow` was called with so far. */
  get followed(): readonly { url: string; options: FollowOptions }[] {
    return this.#followed;
  }
}

/** Its text but for scripts and styles inside it. No recursion: a page can nest deeper than the call stack. */
export function textOfElement(element: Element): string {
  let text = '';
  const waiting: ChildNode[] = element.children.toReversed();
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (isText(node)) text += node.data;
    else if (isTag(node) && node.name !== 'script' && node.name !== 'style')
      for (let index = node.children.length - 1; index >= 0; index--) waiting.push(node.children[index]!);
  }
  return foldSpace(text);
}

export function headerOf(rawHeaders: readonly string[], name: string): string | null {
  const wanted = name.toLowerCase();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const header = rawHeaders[index]!;
    if (header.length === wanted.length && header.toLowerCase() === wanted) return rawHeaders[index + 1]!;
  }
  return null;
}

/** What relative links of a page are meant from. */
export function baseUrlOf(page: Page): string {
  return resolveBase(page.attributeOf('base[href]', 'href'), page.url);
}

export function resolveBase(base: string | null, pageUrl: string): string {
  return base !== null && URL.canParse(base, pageUrl) ? new URL(base, pageUrl).href : pageUrl;
}

/** What a handler may ask for besides the page: links of its own. */
interface FollowOptions {
  route?: string;
  priority?: number;
  meta?: Meta;
}

/** As plain data: what a handler makes by mistake must fail here, with its page, and not on the way to the store. */
function checkedOptions({ route, priority, meta }: FollowOptions): FollowOptions {
  if (route !== undefined && typeof route !== 'string') throw new Error('page.follow: route is not a name');
  if (priority !== undefined && !Number.isSafeInteger(priority))
    throw new Error(`page.follow: priority is not an integer: ${priority}`);
  return {
    ...(route === undefined ? {} : { route }),
    ...(priority === undefined ? {} : { priority }),
    ...(meta === undefined || meta === null ? {} : { meta: plainMeta(meta) }),
  };
}

function plainMeta(meta: Meta): Meta {
  const json = toJson(meta, 'page.follow: meta');
  if (!json?.startsWith('{')) throw new Error('page.follow: meta is not an object');
  if (json.length > LIMITS.sourceRowBytesMax)
    throw new Error(`page.follow: meta has ${json.length} bytes, the limit is ${LIMITS.sourceRowBytesMax}`);
  return JSON.parse(json);
}

/** JSON of data that a page or a handler made, as `JSON.stringify`; `what` is named when it is nested too deeply. */
export function toJson(data: unknown, what: string): string | undefined {
  try {
    const json = JSON.stringify(data) as string | undefined;
    if (json === undefined || !isJsonDeeper(json, LIMITS.dataNestingMax)) return json;
  } catch (error) {
    // Where the call stack ends, data is far too deep as well.
    if (!(error instanceof RangeError)) throw error;
  }
  throw new Error(`${what} is nested deeper than ${LIMITS.dataNestingMax} levels`);
}
