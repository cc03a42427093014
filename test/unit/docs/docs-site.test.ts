import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { runInNewContext } from 'node:vm';
import MiniSearch from 'minisearch';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildDocs, type SEARCH_OPTIONS } from '../../../scripts/docs/build-docs.ts';
import { DOCS } from '../../support/docs/docs-text.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

/** `npm run docs`: a site that leads nowhere wrong, needs nothing from outside, and finds its pages. */

const folder = temporaryFolder();
const site = join(folder.path, 'site');
let built: ReturnType<typeof buildDocs>;
const pages = new Map<string, string>();

beforeAll(() => {
  built = buildDocs(site);
  for (const path of readdirSync(site, { recursive: true, encoding: 'utf8' }))
    if (path.endsWith('.html')) pages.set(path, readFileSync(join(site, path), 'utf8'));
});

afterAll(() => folder.remove());

test('has every page of the docs', () => {
  expect(built.pages).toHaveLength(DOCS.length);
  for (const page of built.pages) expect(pages.has(page), page).toBe(true);
  expect(pages.get('index.html')).toContain('<h1 id="seine">Seine</h1>');
});

test('every link leads to a file of the site, and to an anchor that is there', () => {
  const ids = new Map(
    [...pages].map(([path, html]) => [
      path,
      new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id!)),
    ]),
  );
  const wrong: string[] = [];
  let links = 0;
  for (const [path, html] of pages)
    for (const [, target] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^(https?:|mailto:)/.test(target!)) continue;
      links++;
      const [file = '', anchor] = target!.split('#');
      const to = file === '' ? path : relative(site, join(site, dirname(path), file));
      const isThere = existsSync(join(site, to)) && !to.startsWith('..');
      if (!isThere || (anchor !== undefined && !ids.get(to)?.has(anchor))) wrong.push(`${path}: ${target}`);
    }
  expect(wrong).toEqual([]);
  expect(links).toBeGreaterThan(2_000);
});

test('loads nothing from elsewhere', () => {
  for (const [path, html] of pages)
    expect(html.match(/<(?:script|link|img)\b[^>]*(?:src|href)="https?:[^"]*"/g), path).toBeNull();
  for (const name of ['site.css', 'search.js', 'search-index.js'])
    expect(readFileSync(join(site, name), 'utf8'), name).not.toMatch(/@import|url\(|\bfetch\(/);
});

test('finds every page by its title, and settings, commands and codes by their names', () => {
  const window: { SEARCH_INDEX?: string; SEARCH_OPTIONS?: typeof SEARCH_OPTIONS } = {};
  runInNewContext(readFileSync(join(site, 'search-index.js'), 'utf8'), { window });
  const index = MiniSearch.loadJSON(window.SEARCH_INDEX!, window.SEARCH_OPTIONS!);
  const search = (words: string) =>
    index
      .search(words, { prefix: true, fuzzy: 0.15, combineWith: 'AND', boost: { title: 3, page: 2 } })
      .map(({ url }) => String(url).split('#')[0]!);
  const lost = built.pages.filter((page) => {
    const title = built.sections.find(({ url }) => url.startsWith(`${page}#`))!.title;
    return !search(title).slice(0, 12).includes(page);
  });
  expect(lost).toEqual([]);
  expect(search('SEINE_FLEET_KEY')).toContain('docs/fleet.html');
  expect(search('bad-encoding')).toContain('docs/failure-codes.html');
  expect(search('infinite scroll')).toContain('docs/coming-from-crawlee.html');
});
