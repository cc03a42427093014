import { gunzipSync, gzipSync } from 'node:zlib';
import { unpackSitemap } from '../../src/core/sitemap/bytes.ts';
import { RAW_URL_LENGTH_MAX, type SitemapContent } from '../../src/core/sitemap/entry.ts';
import { SITEMAP_META_CHARS_MAX } from '../../src/core/sitemap/item.ts';
import { parseSitemap } from '../../src/core/sitemap/sitemap.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';
import { readXml, type XmlElement } from '../xml.ts';

/**
 * Sitemaps and feeds: in whatever pieces the text comes, the entries are the same; and those of XML without a mistake
 * are the ones that a small strict reader finds.
 */

const BASE = 'https://a.example/list/sitemap.xml';
const URLS = [
  'https://a.example/1',
  '/2',
  ' https://a.example/3\n',
  '',
  'https://b.example/?a=1&amp;b=2',
  '#x',
  '<![CDATA[https://a.example/4]]>',
  'https://a.example/&#233;',
];
const TEXTS = [
  'one',
  'a &lt; b',
  '',
  ' x\n\ty ',
  '2024-05-01',
  'Wed, 01 May 2024 10:00:00 GMT',
  '0.5',
  '<b>bold</b>',
  'constructor',
];
const EXTRAS = [
  'image:image',
  'video:video',
  'news:news',
  'xhtml:link',
  'x:constructor',
  '__proto__',
  'toString',
  'x:loc',
  'priority',
  'lastmod',
  'changefreq',
  'title',
  'guid',
  'id',
  'updated',
  'pubDate',
];
const INNER = [
  'image:loc',
  'image:title',
  'video:content_loc',
  'news:name',
  'news:title',
  'constructor',
  '__proto__',
  'x',
];
const PIECES = [
  '<url>',
  '</url>',
  '<loc>',
  '</loc>',
  '<![CDATA[',
  ']]>',
  '<!--',
  '-->',
  '<?x ?>',
  '<!DOCTYPE x>',
  '&',
  '&#0;',
  ' xml:base="/b/"',
  '\0',
  '<image:image>',
  'https://',
];

function element(random: Random, name: string, content: string): string {
  const attributes = random.oneIn(6)
    ? random.pick([' a="1"', ' xml:base="/b/"', ' rel="alternate" href="/alt"', " href='/x'"])
    : '';
  return content === '' && random.oneIn(3)
    ? `<${name}${attributes}/>`
    : `<${name}${attributes}>${content}</${name}>`;
}

function extra(random: Random): string {
  const name = random.pick(EXTRAS);
  if (/^(image|video|news):/.test(name))
    return element(
      random,
      name,
      random.text(0, 3, () => element(random, random.pick(INNER), random.pick([...URLS, ...TEXTS]))),
    );
  return element(random, name, random.pick(TEXTS));
}

function item(random: Random, name: string, place: string): string {
  const children = random.list(0, 3, () => extra(random));
  if (!random.oneIn(8))
    children.splice(random.below(children.length + 1), 0, element(random, place, random.pick(URLS)));
  return element(
    random,
    name,
    random.pick(['', '\n', '<!-- note -->']) + children.join(random.pick(['', '\n  '])),
  );
}

function list(random: Random): string {
  const [root, name, place] = random.pick([
    ['urlset', 'url', 'loc'],
    ['urlset', 'url', 'loc'],
    ['sitemapindex', 'sitemap', 'loc'],
    ['rss', 'item', 'link'],
    ['feed', 'entry', 'id'],
    ['URLSET', 'Url', 'LOC'],
  ] as const);
  const items = random.text(0, 6, () => item(random, name, place));
  const start = random.pick(['', '<?xml version="1.0" encoding="UTF-8"?>\n', '\uFEFF', ' \n']);
  return start + element(random, root, root === 'rss' ? element(random, 'channel', items) : items);
}

const plainText = (random: Random) =>
  random.list(1, 6, () => random.pick([...URLS, '# note', 'text'])).join('\n');

export function openSitemapTarget(): Target {
  return {
    generate(random) {
      const bytes = Buffer.from(random.oneIn(8) ? plainText(random) : list(random));
      const changed = random.oneIn(2) ? mutate(bytes, random, PIECES) : bytes;
      if (!random.oneIn(10)) return changed;
      const packed = gzipSync(changed, { level: 1 });
      return random.oneIn(2) ? mutate(packed, random) : packed;
    },
    async check(input) {
      const bytes = await unpacked(input);
      if (bytes === null) return;
      const text = bytes.toString('utf8');
      const whole = read(text);
      for (const size of [1, 3, 17]) mustEqual(read(pieces(text, size)), whole, `in pieces of ${size}`);
      if (typeof whole === 'string') return;
      for (const { url, meta, modified } of whole.entries) {
        must(url.length <= 4 * RAW_URL_LENGTH_MAX, 'a URL is too long');
        must(JSON.stringify(meta).length <= 8 * SITEMAP_META_CHARS_MAX, 'metadata is too long');
        must(
          modified === null || (Number.isFinite(modified.from) && modified.from <= modified.until),
          'a date is no period',
        );
      }
      const root = readXml(text);
      if (root !== null)
        mustEqual(
          whole.entries.map(({ url }) => url),
          urlsIn(root) ?? whole.entries.map(({ url }) => url),
          'URLs',
        );
    },
  };
}

async function unpacked(input: Buffer): Promise<Buffer | null> {
  try {
    return await unpackSitemap(input);
  } catch (error) {
    must(error instanceof Error && error.constructor === Error, `unpacking throws ${String(error)}`);
    let isWhole = true;
    try {
      gunzipSync(input);
    } catch {
      isWhole = false;
    }
    must(!isWhole, 'whole gzip data is refused');
    return null;
  }
}

/** The text of the error for what is no list. */
function read(text: string | Iterable<string>): SitemapContent | string {
  try {
    return parseSitemap(text, BASE);
  } catch (error) {
    // What is no list throws a plain error with a sentence for people.
    must(error instanceof Error && error.constructor === Error, `reading throws ${String(error)}`);
    return error.message;
  }
}

function* pieces(text: string, size: number): Generator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

const localName = ({ name }: XmlElement) => name.slice(name.indexOf(':') + 1).toLowerCase();
const prefixOf = ({ name }: XmlElement) => name.slice(0, Math.max(0, name.indexOf(':'))).toLowerCase();

/** Null where the rules of more than the plainest lists would be needed. */
function urlsIn(root: XmlElement): string[] | null {
  const format = localName(root);
  if (!['urlset', 'sitemapindex'].includes(format)) return null;
  const urls: string[] = [];
  for (const child of root.children) {
    if (!['url', 'sitemap'].includes(localName(child))) return null;
    if (child.attributes.size > 0 || root.attributes.size > 0) return null;
    // Alternates become entries of their own, and text inside an item may stand for its place.
    if (
      child.children.some(
        (field) => localName(field) === 'link' || ['url', 'sitemap'].includes(localName(field)),
      )
    )
      return null;
    if (child.text.trim() !== '') return null;
    const places = child.children.filter(
      (field) => localName(field) === 'loc' && !['image', 'video', 'news'].includes(prefixOf(field)),
    );
    if (places.some(({ children }) => children.length > 0)) return null;
    // Each place of an entry is an entry.
    const named = places.map(({ text }) => text.trim()).filter((text) => text !== '');
    const resolved = named.map((place) =>
      /^https?:\/\//i.test(place) ? place : (URL.parse(place, BASE)?.href ?? place),
    );
    urls.push(...(resolved.length > 0 ? resolved : ['']));
  }
  return urls;
}
